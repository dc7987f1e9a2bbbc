"""Violations of a compliance level are reported before they are saved: by the management interface and by the admin form."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client as Browser
from django.urls import reverse

from authapi.compliance import rules
from authapi.compliance.rules import Rule
from authapi.models import Client
from authapi.services.clients import create_client, update_client
from identity.models import Tenant
from identity.services.failures import Invalid
from tests.authapi.api.conftest import api as api
from tests.authapi.assertions import public_pem
from tests.authapi.compliance.bank import bank_of
from tests.authapi.memory import forget_all
from tests.factories.admin import browser_of, new_staff
from tests.factories.sign_in import CALLBACK, web_client
from tests.management import Management

LEVEL = "fapi2_sp_pkj_mtls"
# Each rule that the web application of the fixture `ordinary` breaks, with the field of the admin form that must change.
BROKEN: dict[str, Rule] = {
    "token_endpoint_auth_method": rules.PRIVATE_KEY_JWT,
    "alg": rules.PS256_ID_TOKENS,
    "callbacks": rules.EXACT_CALLBACKS,
    "grant_types": rules.NO_IMPLICIT_GRANT,
    "par_request_expiry": rules.SHORT_PUSHES,
    "oidc_conformant": rules.CONFORMANT,
    "rotation_type": rules.NO_ROTATION,
}
SETTINGS: dict[str, Any] = {
    "par_request_expiry": 600,
    "oidc_conformant": False,
    "refresh_token": {"rotation_type": "rotating", "expiration_type": "expiring"},
}


@pytest.fixture
def ordinary(tenant: Tenant) -> Client:
    grants = ["authorization_code", "implicit"]
    callbacks = f"{CALLBACK} https://*.example.test/back"
    return web_client(tenant, grant_types=grants, redirect_uris=callbacks, settings=SETTINGS)[0]


def page(client: Client) -> str:
    return reverse("admin:authapi_client_change", args=(quote(client.pk),))


def form_of(browser: Browser, address: str, **changes: Any) -> dict[str, Any]:
    form = browser.get(address).context["adminform"].form
    sent = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in {**sent, **changes}.items() if value not in (None, False)}


def test_the_interface_names_all_broken_rules_in_one_answer_and_changes_nothing(api: Management, ordinary: Client) -> None:
    answer = api.patch(f"clients/{ordinary.client_id}", {"compliance_level": LEVEL})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    for rule in BROKEN.values():
        assert f"'{rule.sentence.rstrip('.')}' on property {rule.member}" in answer.json["message"]
    ordinary.refresh_from_db()
    assert "compliance_level" not in ordinary.settings


def test_a_client_can_be_created_together_with_its_level_and_its_key(api: Management) -> None:
    key = {"credential_type": "public_key", "pem": public_pem("first"), "alg": "PS256"}
    body = {
        "name": "Bank",
        "compliance_level": LEVEL,
        "jwt_configuration": {"alg": "PS256"},
        "callbacks": [CALLBACK],
        "grant_types": ["authorization_code"],
        "client_authentication_methods": {"private_key_jwt": {"credentials": [key]}},
    }
    made = api.post("clients", body)
    assert (made.status, made.json["compliance_level"]) == (201, LEVEL), made.json
    odd = {**key, "alg": "RS256", "pem": public_pem("second")}
    refused = api.post("clients", {**body, "client_authentication_methods": {"private_key_jwt": {"credentials": [odd]}}})
    assert rules.PS256_KEYS.sentence.rstrip(".") in refused.json["message"]
    assert len(api.get("clients").json) == 1


def test_an_unknown_level_is_refused(api: Management, ordinary: Client) -> None:
    assert api.patch(f"clients/{ordinary.client_id}", {"compliance_level": "fapi9"}).status == 400
    with pytest.raises(Invalid, match="Expected one of"):
        update_client(tenant_id=ordinary.tenant_id, client_id=ordinary.client_id, changes={"settings": {"compliance_level": "fapi9"}})


def test_a_later_change_that_breaks_a_rule_is_refused(api: Management, tenant: Tenant) -> None:
    bank = bank_of(tenant, LEVEL)
    answer = api.patch(f"clients/{bank.client.client_id}", {"callbacks": ["http://app.example.test/"]})
    assert rules.HTTPS_CALLBACKS.sentence.rstrip(".") in answer.json["message"]
    assert api.patch(f"clients/{bank.client.client_id}", {"name": "Bank of Ada"}).status == 200
    assert (
        api.patch(f"clients/{bank.client.client_id}", {"compliance_level": None, "callbacks": ["http://app.example.test/"]}).status == 200
    )


def test_the_form_shows_each_broken_rule_at_the_field_that_must_change(tenant: Tenant, ordinary: Client) -> None:
    browser = browser_of(new_staff(tenant))
    answer = browser.post(page(ordinary), form_of(browser, page(ordinary), compliance_level=LEVEL))
    errors = answer.context["adminform"].form.errors
    assert {field: list(errors[field]) for field in errors} == {field: [rule.sentence] for field, rule in BROKEN.items()}
    ordinary.refresh_from_db()
    assert "compliance_level" not in ordinary.settings


def test_the_form_for_a_new_client_refuses_a_level_because_the_client_has_no_key(tenant: Tenant) -> None:
    browser = browser_of(new_staff(tenant))
    add = f"{reverse('admin:authapi_client_add')}?kind=all"
    sent = form_of(browser, add, name="Bank", callbacks=CALLBACK, compliance_level=LEVEL, alg="PS256", rotation_type="non-rotating")
    errors = browser.post(add, sent).context["adminform"].form.errors
    assert dict(errors) == {"token_endpoint_auth_method": [rules.PRIVATE_KEY_JWT.sentence]}
    assert not Client.objects.of(tenant.pk).filter(name="Bank").exists()


def test_the_unchanged_form_keeps_a_level_and_an_empty_choice_removes_the_level(tenant: Tenant) -> None:
    bank = bank_of(tenant, "fapi1_adv_pkj_par")
    browser = browser_of(new_staff(tenant))
    before = bank.client.settings
    answer = browser.post(page(bank.client), form_of(browser, page(bank.client)))
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    bank.client.refresh_from_db()
    assert bank.client.settings == before
    assert browser.post(page(bank.client), form_of(browser, page(bank.client), compliance_level="")).status_code == 302
    bank.client.refresh_from_db()
    assert "compliance_level" not in bank.client.settings


def test_the_page_of_a_client_lists_the_rules_with_the_broken_rules_first(tenant: Tenant, ordinary: Client) -> None:
    bank = bank_of(tenant, LEVEL)
    browser = browser_of(new_staff(tenant))
    content = browser.get(page(bank.client)).content.decode()
    assert rules.PUSHED.sentence in content
    assert "follows every rule" in content
    bank.set(algorithm="RS256")
    listed = re.search(r"Rules of the compliance level.*?</section>", browser.get(page(bank.client)).content.decode(), re.DOTALL)
    assert listed is not None
    assert listed[0].count("badge-bad") == 1
    assert listed[0].index("badge-bad") < listed[0].index(rules.PS256_ID_TOKENS.sentence) < listed[0].index(rules.PUSHED.sentence)
    assert "Rules of the compliance level" not in browser.get(page(ordinary)).content.decode()


# --- Standard answers -----------------------------------------------------------------------------------------------------------


def test_the_interface_and_the_form_switch_standard_answers_on(api: Management, tenant: Tenant, ordinary: Client) -> None:
    assert api.patch(f"clients/{ordinary.client_id}", {"oauth_standard_errors": True}).json["oauth_standard_errors"] is True
    browser = browser_of(new_staff(tenant))
    sent = form_of(browser, page(ordinary))
    assert sent["oauth_standard_errors"] is True
    assert browser.post(page(ordinary), {**sent, "oauth_standard_errors": ""}).status_code == 302
    ordinary.refresh_from_db()
    forget_all()
    assert ordinary.settings["oauth_standard_errors"] is False


def test_a_client_without_a_level_can_be_created(tenant: Tenant) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="Plain", settings={"compliance_level": "none"}, redirect_uris="http://a.test/")
    assert client.settings["compliance_level"] == "none"
