"""Every button, form and list action of the admin either requires a recent proof or is listed as requiring none.

The tests fail for a new button, form or action until it is listed with or without a proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.forms import PasswordInput
from django.test import Client
from django.urls import reverse

from authapi.services.api_resources import create_api_resource
from config.console.admin_site import site
from identity.admin.object_actions import ObjectActionsAdmin
from identity.admin.service_admin import ServiceAdmin
from identity.models import Connection, Tenant
from provisioning.models import Action, DeadLetter
from tests.authapi.factors.walks import set_factors
from tests.authapi.test_sign_in_pages import form_of
from tests.config.console.staff_account.sessions import grow_old
from tests.factories.admin import Rows, browser_of, new_staff
from tests.factories.models.identity import ConnectionFactory

# Buttons that require a proof: they show, create or change secrets, change which staff may sign in, or end a tenant.
BUTTONS = {
    ("authapi.apiresource", "rotate-signing-secret"),
    ("authapi.client", "rotate-secret"),
    ("authapi.clientcredential", "use"),
    ("authapi.edgekey", "renew"),
    ("authapi.invitation", "new-link"),
    ("authapi.signingkey", "rotate"),
    ("authapi.signingkey", "revoke"),
    ("authapi.samlkey", "prepare"),
    ("authapi.samlkey", "rotate"),
    ("authapi.samlkey", "remove"),
    ("identity.enrolledfactor", "remove"),
    ("identity.tenant", "delete"),
    ("identity.user", "reset-factors"),
    ("identity.user", "send-setup-link"),
}
FORMS = {
    ("authapi.client", "add"),
    ("authapi.clientcredential", "add"),
    ("authapi.edgekey", "add"),
    ("authapi.initialaccesstoken", "add"),
    ("identity.staff", "add"),
    ("identity.staff", "change"),
    ("provisioning.action", "add"),
}
# Secrets that can be entered only with a proof: the model, and the name of the field in the form class.
SECRETS = {
    ("authapi.apiresource", "signing_secret"),
    ("identity.staff", "password"),
    ("provisioning.action", "SCIM_BEARER_TOKEN"),
    ("authapi.tenantsettings", "notifier_webhook_secret"),
    *(("events.eventstream", name) for name in ("token", "password", "header_value", "signing_secret")),
}
# Masked fields that require no proof. The password of a new user is such a field, because the user has no data yet.
OTHER_SECRETS = {("identity.user", "password")}
# Other actions of lists require a proof only if they become a job; `tests/identity/admin/test_bulk_actions.py` tests this.
LISTS = {("provisioning.deadletter", "redeliver_selected")}
# Buttons that require no proof: they show no secret.
OTHER_BUTTONS = {
    "identity.user": {
        *("block", "unblock", "link", "forget-browsers", "lift-blocks", "log-out"),
        *("add-organization", "add-group", "add-role", "add-permission"),
    },
    "identity.organization": {"second-factors", "add-member", "assign-member-role", "add-connection", "assign-group-role", "invite"},
    "identity.group": {"add-member", "add-group", "assign-role"},
    "identity.role": {"assign-to-user", "assign-to-member", "assign-to-group", "add-permission"},
    "authapi.rolepermission": {"remove"},
    "authapi.userpermission": {"remove"},
    "identity.linkedidentity": {"unlink"},
    "identity.job": {"cancel", "write", "resume", "confirm-deletions", "decline-deletions"},
    "identity.tenant": {"activate", "suspend", "restore"},
    "identity.customdomain": {"verify"},
    "authapi.apiresource": {"add-permission"},
    "authapi.client": {"revoke", "end-registration"},
    "authapi.initialaccesstoken": {"revoke"},
    "authapi.rememberedbrowser": {"forget"},
    "authapi.session": {"end", "revoke"},
    "authapi.refreshtoken": {"revoke"},
    "authapi.consent": {"withdraw"},
    "authapi.invitation": {"resend", "revoke"},
    "authapi.loginfailures": {"lift"},
    "authapi.addressblock": {"lift"},
    "events.eventstream": {"enable", "disable", "resume", "synchronize", "compare", "allow-deletions", "deletion-threshold"},
    "provisioning.action": {"deploy"},
    "provisioning.accountlink": {"confirm", "forget"},
    "provisioning.actionversion": {"deploy"},
    # These buttons change one dead letter. Redelivering many dead letters requires a proof.
    "provisioning.deadletter": {
        *("redeliver", "redeliver_current", "redeliver_forced"),
        *("acknowledge", "ignore", "resolve", "open_again"),
    },
    "provisioning.ignoredkind": {"hear"},
}


# For each button: the column values with which the page of a row has the button.
_VALUES = {
    ("authapi.apiresource", "rotate-signing-secret"): {"sealed_signing_secret": "sealed"},
    ("authapi.signingkey", "revoke"): {"state": "previous"},
    ("authapi.signingkey", "rotate"): {"state": "current"},
    ("authapi.samlkey", "prepare"): {"state": "current"},
    ("authapi.samlkey", "rotate"): {"state": "next"},
    ("authapi.samlkey", "remove"): {"state": "previous"},
}


def buttons() -> Iterator[tuple[str, str, bool]]:
    for model, page in site._registry.items():
        if isinstance(page, ObjectActionsAdmin):
            for action in page.object_actions:
                yield model._meta.label_lower, action.name, action.needs_proof


def secret_fields() -> Iterator[tuple[str, str]]:
    for model, page in site._registry.items():
        if isinstance(page, ServiceAdmin):
            for name, field in page.form.base_fields.items():
                if isinstance(field.widget, PasswordInput):
                    yield model._meta.label_lower, name


def actions_of_lists() -> Iterator[tuple[str, str, bool]]:
    for model, page in site._registry.items():
        for action in page.actions or ():
            yield model._meta.label_lower, getattr(action, "__name__", ""), getattr(action, "needs_proof", False)


@pytest.fixture
def operator(committed_db: None) -> Client:
    """Return a browser of a platform operator whose proof has expired."""
    browser = browser_of(new_staff(None))
    grow_old(browser)
    return browser


def test_every_button_is_declared_to_require_a_proof_or_not() -> None:
    found = set(buttons())
    undecided = {(label, name) for label, name, wants in found if not wants and name not in OTHER_BUTTONS.get(label, set())}

    assert {(label, name) for label, name, wants in found if wants} == BUTTONS
    assert undecided == set()


def test_the_listed_forms_and_list_actions_require_a_proof() -> None:
    forms = {
        (model._meta.label_lower, what)
        for model, page in site._registry.items()
        if isinstance(page, ServiceAdmin)
        for what in page.proof_for
    }

    assert forms == FORMS
    assert {(label, name) for label, name, wants in actions_of_lists() if wants} == LISTS


def test_every_masked_field_is_declared_to_require_a_proof_or_not() -> None:
    assert set(secret_fields()) == SECRETS | OTHER_SECRETS


def assert_asks_for_proof(browser: Client, address: str, *, by_get: bool = True, sent: dict[str, str] | None = None) -> None:
    """Assert that POST, and GET if `by_get`, redirect to the page that requests a proof."""
    for answer in [browser.post(address, sent or {"post": "yes"}), *([browser.get(address)] if by_get else [])]:
        assert answer.status_code == 302, address
        assert answer.headers["location"].startswith("/admin/account/prove/?next="), address


def place_of(label: str, page: str, *args: object) -> str:
    return reverse(f"admin:{label.replace('.', '_')}_{page}", args=args)


def test_no_protected_button_works_in_a_session_with_an_expired_proof(operator: Client, tenant: Tenant) -> None:
    # A setup link requires a tenant that offers a factor.
    set_factors(tenant, "otp")
    rows = Rows(tenant)
    models = {model._meta.label_lower: model for model in site._registry}
    for label, name in sorted(BUTTONS):
        row = rows.of(models[label])
        if (label, name) in _VALUES:
            models[label]._default_manager.filter(pk=row.pk).update(**_VALUES[label, name])
        assert_asks_for_proof(operator, place_of(label, "action", quote(row.pk), name))


def test_no_protected_form_works_in_a_session_with_an_expired_proof(tenant: Tenant) -> None:
    colleague, browser = new_staff(tenant), browser_of(new_staff(tenant))
    grow_old(browser)
    for label, what in sorted(FORMS):
        if what == "add":
            # The page of a new client begins with links to its kinds, and has no form.
            begins_with_choice = label == "authapi.client"
            assert_asks_for_proof(browser, place_of(label, "add"), by_get=not begins_with_choice)
            if begins_with_choice:
                assert_asks_for_proof(browser, f"{place_of(label, 'add')}?kind=all")
        else:
            # GET may show the page, because it contains no secret.
            assert_asks_for_proof(browser, place_of(label, "change", quote(colleague.pk)), by_get=False)
            assert browser.get(place_of(label, "change", quote(colleague.pk))).status_code == 200


@pytest.mark.parametrize(("label", "name"), sorted(SECRETS))
def test_no_secret_is_entered_with_an_expired_proof(tenant: Tenant, label: str, name: str) -> None:
    model = next(model for model in site._registry if model._meta.label_lower == label)
    browser = browser_of(new_staff(tenant))
    grow_old(browser)

    assert_asks_for_proof(browser, place_of(label, "add"), by_get=False, sent={name: "a secret of some length"})
    row = Rows(tenant).of(model)
    assert_asks_for_proof(browser, place_of(label, "change", quote(row.pk)), by_get=False, sent={name: "a secret of some length"})


def test_the_signing_settings_of_an_api_cannot_be_changed_with_an_expired_proof(tenant: Tenant) -> None:
    signed: dict[str, Any] = {"settings": {"signing_alg": "HS256"}, "signing_secret": "s" * 40}
    api = create_api_resource(tenant_id=tenant.pk, identifier="https://signed.example.test/", **signed)
    browser = browser_of(new_staff(tenant))
    address = place_of("authapi.apiresource", "change", quote(api.pk))
    sent = form_of(browser, address)
    grow_old(browser)
    changes = ({"signing_secret": "t" * 40}, {"signing_alg": "RS256"}, {"signing_alg": ""})
    for change in changes:
        answer = browser.post(address, {**sent, **change})
        assert answer.headers.get("location", "").startswith("/admin/account/prove/?next="), change
    api.refresh_from_db()
    assert api.signing_secret == "s" * 40

    saved = browser.post(address, {**sent, "name": "Orders"})
    assert "/prove/" not in saved.headers["location"]
    api.refresh_from_db()
    assert (api.name, api.signing_secret) == ("Orders", "s" * 40)


def test_many_dead_letters_cannot_be_redelivered_with_an_expired_proof(operator: Client, tenant: Tenant) -> None:
    letter = Rows(tenant).of(DeadLetter)
    DeadLetter.objects.filter(pk=letter.pk).update(state="open")
    sent = {"action": "redeliver_selected", "_selected_action": [letter.pk], "confirmed": "1", "reason": "x"}
    answer = operator.post(reverse("admin:provisioning_deadletter_changelist"), sent)

    assert answer.headers["location"].startswith("/admin/account/prove/?next=")
    assert DeadLetter.objects.get(pk=letter.pk).state == "open"
    assert_asks_for_proof(operator, reverse("admin:provisioning_deadletter_redelivery"))


def test_secret_fields_of_an_action_are_hidden_and_read_only_with_an_expired_proof(tenant: Tenant) -> None:
    action = Rows(tenant).of(Action)
    address = place_of("provisioning.action", "change", quote(action.pk))
    browser = browser_of(new_staff(tenant))
    assert 'name="SCIM_BEARER_TOKEN"' in browser.get(address).content.decode()

    grow_old(browser)
    page = browser.get(address).content.decode()
    assert 'name="SCIM_BEARER_TOKEN"' not in page
    assert "Confirm your identity" in page
    answer = browser.post(address, {"name": action.name, "SCIM_BEARER_TOKEN": "another"})
    assert answer.headers["location"].startswith("/admin/account/prove/?next=")
    assert not action.secrets.exists()


@pytest.mark.parametrize("sent", ['{"client_secret": "s"}', '{"client\\u005fsecret": "s"}', '{"client_secret": null}'])
def test_secret_options_of_a_connection_cannot_be_set_with_an_expired_proof(tenant: Tenant, sent: str) -> None:
    connection = ConnectionFactory.create(tenant_id=tenant.pk, name="elsewhere", strategy="oidc", options={"client_id": "c"})
    browser = browser_of(new_staff(tenant))
    grow_old(browser)
    for address in (place_of("identity.connection", "change", quote(connection.pk)), place_of("identity.connection", "add")):
        answer = browser.post(address, {"options": sent, "name": "other", "strategy": "oidc"})
        assert answer.headers["location"].startswith("/admin/account/prove/?next="), address

    assert Connection.objects.of(tenant.pk).get(pk=connection.pk).sealed_options == {}
    plain = browser.post(place_of("identity.connection", "change", quote(connection.pk)), {"options": "{}"})
    assert "/prove/" not in plain.headers.get("location", "")


def test_a_secret_cannot_be_set_in_its_own_field_with_an_expired_proof(tenant: Tenant) -> None:
    connection = ConnectionFactory.create(tenant_id=tenant.pk, name="elsewhere", strategy="github", options={"client_id": "c"})
    browser = browser_of(new_staff(tenant))
    grow_old(browser)
    address = place_of("identity.connection", "change", quote(connection.pk))
    answer = browser.post(address, {"option_client_id": "c", "option_client_secret": "x"})
    assert answer.headers["location"].startswith("/admin/account/prove/?next=")
    assert Connection.objects.of(tenant.pk).get(pk=connection.pk).sealed_options == {}
    plain = browser.post(address, {"option_client_id": "c", "option_client_secret": ""})
    assert "/prove/" not in plain.headers.get("location", "")


@pytest.mark.parametrize("sent", ['{"from": "+1"}', "{}", "", '{"gateway_authentication": "text"}', '{"homemade": 1}'])
def test_sealed_options_cannot_be_added_or_removed_with_an_expired_proof(tenant: Tenant, sent: str) -> None:
    options = {"from": "+1", "gateway_authentication": {"method": "bearer", "secret": "s"}}
    connection = ConnectionFactory.create(tenant_id=tenant.pk, name="texts", strategy="sms", options=options)
    browser = browser_of(new_staff(tenant))
    grow_old(browser)

    answer = browser.post(place_of("identity.connection", "change", quote(connection.pk)), {"options": sent})

    assert answer.headers["location"].startswith("/admin/account/prove/?next=")
    assert Connection.objects.of(tenant.pk).get(pk=connection.pk).open_options() == options


def test_an_account_without_permission_is_refused_without_a_request_for_a_proof(tenant: Tenant) -> None:
    rows = Rows(tenant)
    auditor = browser_of(new_staff(tenant, "auditor"))
    grow_old(auditor)
    for label, name in sorted(BUTTONS):
        model = next(model for model in site._registry if model._meta.label_lower == label)
        assert auditor.post(place_of(label, "action", quote(rows.of(model).pk), name)).status_code == 403, (label, name)
    for label, what in sorted(FORMS):
        if what == "add":
            assert auditor.post(place_of(label, "add")).status_code == 403, label
