"""Sessions, tokens, consents, blocks, the sign-in log and the settings in the admin."""

from __future__ import annotations

import json
import re
import time
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.db import connection
from django.test import Client as Browser
from django.urls import reverse
from django.utils import timezone

from authapi.logs import browsing
from authapi.models import ApiResource, Client, ClientGrant, Consent, LoginFailures, RefreshToken, Session, SignIn, TenantSettings
from authapi.services.api_resources import create_api_resource
from authapi.services.clients import create_client
from authapi.tenant_settings import remembered_settings, sign_in_settings
from identity.models import AuditEntry, Connection, Tenant, User
from tests.factories.admin import browser_of, new_staff
from tests.factories.identity import make_user
from tests.factories.sign_ins import make_block, make_consent, make_refresh_token, make_session, make_sign_in

SETTINGS = "admin:authapi_tenantsettings_changelist"
LOG = "admin:authapi_signin_changelist"

CONFIRMED = {"confirmed": "yes", "shown": "2", "reason": "Lost"}


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


@pytest.fixture
def ada(database_connection: Connection) -> User:
    return make_user(connection=database_connection, email="ada@example.test")


@pytest.fixture
def shop(tenant: Tenant) -> Client:
    return create_client(tenant_id=tenant.pk, name="Shop")[0]


def action(row: Any, name: str) -> str:
    return reverse(f"admin:authapi_{row._meta.model_name}_action", args=(quote(row.pk), name))


def form_of(browser: Browser, address: str, **changes: Any) -> dict[str, Any]:
    form = browser.get(address, follow=True).context["adminform"].form
    sent = {name: form[name].value() for name in form.fields}
    sent |= {form[name].html_initial_name: form[name].value() for name, field in form.fields.items() if field.show_hidden_initial}
    return {name: value for name, value in {**sent, **changes}.items() if value not in (None, False)}


def test_a_session_is_ended_after_a_confirmation_and_the_audit_log_has_an_entry(browser: Browser, ada: User, shop: Client) -> None:
    session = make_session(ada, shop)
    token = make_refresh_token(ada, shop, session)
    assert browser.get(action(session, "end")).status_code == 200
    assert Session.objects.of(ada.tenant_id).exists()

    answer = browser.post(action(session, "revoke"), follow=True)

    assert "Session of" in answer.content.decode()
    assert "ended." in answer.content.decode()
    assert not Session.objects.of(ada.tenant_id).exists()
    token.refresh_from_db()
    assert token.revoked is not None
    assert AuditEntry.objects.filter(object_id=session.pk, act__contains="refresh tokens").exists()


def test_many_sessions_and_tokens_are_ended_together(browser: Browser, ada: User, shop: Client) -> None:
    sessions, tokens = [make_session(ada) for _ in range(2)], [make_refresh_token(ada, shop) for _ in range(2)]
    kept = make_session(ada)
    chosen = {"action": "end_selected", ACTION_CHECKBOX_NAME: [row.pk for row in sessions], **CONFIRMED}
    assert "End 2 sessions?" in browser.post(reverse("admin:authapi_session_changelist"), {**chosen, "confirmed": ""}).content.decode()
    assert Session.objects.of(ada.tenant_id).count() == 3
    browser.post(reverse("admin:authapi_session_changelist"), chosen)
    chosen = {"action": "revoke_selected", ACTION_CHECKBOX_NAME: [str(row.pk) for row in tokens], **CONFIRMED}
    browser.post(reverse("admin:authapi_refreshtoken_changelist"), chosen)

    assert list(Session.objects.of(ada.tenant_id)) == [kept]
    assert not RefreshToken.objects.of(ada.tenant_id).filter(revoked=None).exists()
    assert AuditEntry.objects.filter(object_id__in=[row.pk for row in sessions], act="End selected sessions", reason="Lost").count() == 2


def test_a_block_can_be_lifted_and_a_consent_can_be_revoked(browser: Browser, ada: User, shop: Client) -> None:
    block, consent, token = make_block(ada), make_consent(ada, shop), make_refresh_token(ada, shop)

    browser.post(action(block, "lift"))
    browser.post(action(consent, "withdraw"))

    assert not LoginFailures.objects.of(ada.tenant_id).exists()
    assert not Consent.objects.of(ada.tenant_id).exists()
    token.refresh_from_db()
    assert token.revoked is not None


def test_many_blocks_are_lifted_and_consents_revoked_together(browser: Browser, ada: User, shop: Client) -> None:
    block, consent, token = make_block(ada), make_consent(ada, shop), make_refresh_token(ada, shop)
    for model, action_name, row in (("loginfailures", "lift", block), ("consent", "withdraw", consent)):
        chosen = {"action": f"{action_name}_selected", ACTION_CHECKBOX_NAME: [row.pk], **CONFIRMED}
        browser.post(reverse(f"admin:authapi_{model}_changelist"), chosen)

    assert not LoginFailures.objects.of(ada.tenant_id).exists()
    assert not Consent.objects.of(ada.tenant_id).exists()
    token.refresh_from_db()
    assert token.revoked is not None


def test_staff_with_read_permission_cannot_end_anything(tenant: Tenant, ada: User, shop: Client) -> None:
    auditor = browser_of(new_staff(tenant, "auditor"))
    session, block = make_session(ada), make_block(ada)
    token = make_refresh_token(ada, shop)
    for row, name in ((session, "end"), (session, "revoke"), (block, "lift"), (token, "revoke")):
        assert auditor.post(action(row, name)).status_code == 403, name
    listed = reverse("admin:authapi_session_changelist")
    assert auditor.get(listed).status_code == 200
    auditor.post(listed, {"action": "end_selected", ACTION_CHECKBOX_NAME: [session.pk], **CONFIRMED})
    assert Session.objects.of(ada.tenant_id).filter(pk=session.pk).exists()


def test_the_page_of_a_user_lists_sessions_and_tokens(browser: Browser, tenant: Tenant, ada: User, shop: Client) -> None:
    address = reverse("admin:identity_user_change", args=(quote(ada.pk),)) + "?tab=security"
    assert "No active sessions." in browser.get(address).content.decode()
    session = make_session(ada, shop)
    token, line = make_refresh_token(ada, shop, session), make_sign_in(ada, shop)
    make_block(ada)

    shown = browser.get(address).content.decode()

    for text in (session.pk, token.wire_id, "192.0.2.7", "Wrong password", line.description, "Blocks"):
        assert text in shown, text
    operator = browser_of(new_staff(tenant, "provisioning_operator")).get(address).content.decode()
    assert session.pk not in operator
    assert token.wire_id not in operator


def test_the_sign_in_log_shows_what_happened_and_why(browser: Browser, ada: User, shop: Client) -> None:
    make_sign_in(ada, shop)
    make_sign_in(ada, shop, type="s", is_success=True, description="")

    shown = browser.get(reverse(LOG)).content.decode()

    for text in ("Wrong password", "Wrong email or password.", "Login", "Shop", "192.0.2.7", "ada@example.test"):
        assert text in shown, text


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ({"type": "s"}, {"good"}),
        ({"outcome": "bad"}, {"failed", "other"}),
        ({"user": "ADA@example.test"}, {"failed", "good"}),
        ({"user": "id of ada"}, {"failed", "good"}),
        ({"client": "id of shop"}, {"failed", "good"}),
        ({"ip": "2001:db8::1"}, {"other"}),
        ({"connection": "people"}, {"failed", "good", "other"}),
        ({"connection": "partners"}, set()),
        ({"since": "2021-01-01T00:00:00"}, {"failed", "other"}),
        ({"until": "2021-01-01T00:00:00"}, {"good"}),
        ({}, {"failed", "good", "other"}),
    ],
)
def test_each_field_of_the_search_form_selects_lines_of_the_sign_in_log(
    browser: Browser, ada: User, shop: Client, search: dict[str, str], expected: set[str]
) -> None:
    bob = make_user(connection=ada.connection, email="bob@example.test")
    long_ago = timezone.now().replace(year=2020)
    made = {
        make_sign_in(ada, shop).pk: "failed",
        make_sign_in(ada, shop, type="s", is_success=True, created_at=long_ago).pk: "good",
        make_sign_in(bob, ip="2001:db8::1").pk: "other",
    }
    known = {"id of ada": ada.user_id, "id of shop": shop.client_id}

    page = browser.get(reverse(LOG), {name: known.get(value, value) for name, value in search.items()})

    assert {made[row.pk] for row in page.context["cl"].result_list} == expected


def test_an_invalid_search_of_the_sign_in_log_is_reported_at_its_field(browser: Browser, ada: User) -> None:
    make_sign_in(ada)
    for search in ({"ip": "nowhere"}, {"type": "nothing"}, {"since": "2022-01-01T00:00", "until": "2021-01-01T00:00"}):
        page = browser.get(reverse(LOG), search)
        assert page.status_code == 200
        assert page.context["cl"].search.errors
        assert not page.context["cl"].result_list


def test_paging_through_the_sign_in_log_shows_every_line_once(browser: Browser, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsing, "PAGE_ROWS", 3)
    same = timezone.now() - timedelta(hours=1)
    lines = [make_sign_in(ada, created_at=same if number < 5 else same - timedelta(minutes=number)).pk for number in range(8)]
    order = list(SignIn.objects.of(ada.tenant_id).order_by("-created_at", "-pk").values_list("pk", flat=True))
    assert set(order) == set(lines)

    seen: list[str] = []
    page = browser.get(reverse(LOG))
    seen += [row.pk for row in page.context["cl"].result_list]
    while page.context["older_url"]:
        page = browser.get(reverse(LOG) + page.context["older_url"])
        seen += [row.pk for row in page.context["cl"].result_list]
    assert seen == order

    back = browser.get(reverse(LOG) + page.context["newer_url"])
    assert [row.pk for row in back.context["cl"].result_list] == order[3:6]


def test_a_page_that_reaches_its_read_limit_links_to_the_next_page(browser: Browser, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsing, "WALK", 4)
    now = timezone.now()
    wanted = make_sign_in(ada, type="s", is_success=True, created_at=now - timedelta(hours=2)).pk
    for number in range(6):
        make_sign_in(ada, created_at=now - timedelta(minutes=number))

    first = browser.get(reverse(LOG), {"type": "s"})
    assert (first.context["cl"].result_list, first.context["cl"].page.is_partial) == ([], True)
    second = browser.get(reverse(LOG) + first.context["older_url"])
    assert [row.pk for row in second.context["cl"].result_list] == [wanted]
    assert not second.context["cl"].page.is_partial


def test_a_page_of_a_long_sign_in_log_uses_an_index(tenant: Tenant, ada: User) -> None:
    """The sign-in log has a hundred thousand lines.

    Only the oldest line has the searched type, so without an index the page reads all lines.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO authapi_signin (id, tenant_id, type, is_success, description, user_id, user_name, client_id, client_name,
                                           connection, user_agent, details, created_at)
               SELECT substr(md5(%s || n), 1, 26), %s, CASE WHEN n = 1 THEN 'scp' ELSE 'fp' END, false, '', '', '', '', '', '', '', '{}',
                      now() - (100000 - n) * interval '1 second' FROM generate_series(1, 100000) n""",
            [tenant.pk, tenant.pk],
        )
        cursor.execute("ANALYZE authapi_signin")
    started = time.monotonic()
    page = browsing.browse(browsing.Question(tenant_id=tenant.pk, type="scp"))
    while page.is_partial and not page.rows:
        page = browsing.browse(browsing.Question(tenant_id=tenant.pk, type="scp"), browsing.read_place(page.older, is_newer=False))
    assert len(page.rows) == 1
    # The loop makes five reads of twenty thousand lines each. A full table scan might also be this fast, so the test also checks the plan.
    assert time.monotonic() - started < 30
    newest = browsing._walked(browsing.Question(tenant_id=tenant.pk), None)[:50].explain()
    assert "Index Scan" in newest
    assert "Seq Scan" not in newest


def test_one_form_has_all_settings_of_a_tenant(browser: Browser, tenant: Tenant) -> None:
    sent = form_of(
        browser,
        reverse(SETTINGS),
        friendly_name="Acme",
        session_lifetime="12",
        max_attempts="5",
        shields=["block"],
        allowlist="192.0.2.0/24",
        oidc_logout_prompt_enabled="",
    )
    add = browser.get(reverse(SETTINGS)).headers["Location"]
    assert add == reverse("admin:authapi_tenantsettings_add")

    assert browser.post(add, sent).status_code == 302

    found = sign_in_settings(tenant.pk)
    assert found.friendly_name == "Acme"
    assert found.session_lifetime == timedelta(hours=12)
    assert (found.brute_force.max_attempts, found.brute_force.shields) == (5, frozenset({"block"}))
    assert found.brute_force.allowlist == ("192.0.2.0/24",)
    assert not found.is_logout_prompt_enabled
    row = TenantSettings.objects.of(tenant.pk).get()
    assert "idle_session_lifetime" not in row.values
    change = reverse("admin:authapi_tenantsettings_change", args=(quote(row.pk),))
    assert browser.get(add).headers["Location"] == change
    assert browser.post(change, form_of(browser, change, friendly_name="", session_lifetime="")).status_code == 302
    assert sign_in_settings(tenant.pk).friendly_name == tenant.name
    assert sign_in_settings(tenant.pk).session_lifetime == timedelta(hours=168)
    noted = AuditEntry.objects.filter(tenant_id=tenant.pk, object_type="authapi.tenantsettings")
    assert noted.values("act_id").distinct().count() == 2


def test_links_lead_to_each_section_of_the_settings(browser: Browser) -> None:
    content = browser.get(reverse("admin:authapi_tenantsettings_add")).content.decode()

    links = re.findall(r'<a href="#(fieldset-[0-9-]+-heading)">', content)
    assert len(links) == 10
    assert all(f'id="{link}"' in content for link in links)
    assert "Save and add another" not in content


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"session_lifetime": "9000"}, "session_lifetime"),
        ({"allowed_logout_urls": "javascript:alert(1)"}, "allowed_logout_urls"),
        ({"allowlist": "somewhere"}, "allowlist"),
        ({"default_directory": "nobody"}, "default_directory"),
        ({"max_attempts": "0"}, "max_attempts"),
        ({"support_email": "nobody"}, "support_email"),
    ],
)
def test_invalid_settings_stay_in_the_form(browser: Browser, tenant: Tenant, changes: dict[str, Any], field: str | None) -> None:
    add = reverse("admin:authapi_tenantsettings_add")
    answer = browser.post(add, form_of(browser, add, **changes))

    assert answer.status_code == 200
    errors = answer.context["adminform"].form.errors
    assert list(errors) == [field or next(iter(changes))]
    assert not TenantSettings.objects.of(tenant.pk).exists()


def test_an_api_is_created_and_changed_with_one_scope_per_line(browser: Browser, tenant: Tenant) -> None:
    add = reverse("admin:authapi_apiresource_add")
    sent = form_of(
        browser, add, identifier="https://orders.example.test", scopes="read:orders Read orders\nwrite:orders", enforce_policies="on"
    )
    assert browser.post(add, sent).status_code == 302
    api = ApiResource.objects.of(tenant.pk).get(identifier="https://orders.example.test")
    assert api.scope_descriptions == {"read:orders": "Read orders", "write:orders": ""}
    assert api.settings["enforce_policies"] is True

    change = reverse("admin:authapi_apiresource_change", args=(quote(api.pk),))
    assert browser.post(change, form_of(browser, change, scopes="read:orders", user_policy="deny_all")).status_code == 302

    api.refresh_from_db()
    assert api.scope_values == ("read:orders",)
    assert api.settings["subject_type_authorization"]["user"] == {"policy": "deny_all"}
    assert api.settings["enforce_policies"] is True


def test_a_client_grant_is_created_and_its_scopes_are_checked(browser: Browser, tenant: Tenant, shop: Client) -> None:
    api = create_api_resource(tenant_id=tenant.pk, identifier="https://orders.example.test", scopes=[{"value": "read:orders"}])
    add = reverse("admin:authapi_clientgrant_add")
    sent = {"client": shop.pk, "api_resource": api.pk, "subject_type": "user", "scopes": "delete:orders"}
    refused = browser.post(add, sent)
    assert list(refused.context["adminform"].form.errors) == ["scopes"]

    assert browser.post(add, {**sent, "scopes": "read:orders"}).status_code == 302
    grant = ClientGrant.objects.of(tenant.pk).get()
    assert (grant.scopes, grant.subject_type) == (["read:orders"], "user")
    change = reverse("admin:authapi_clientgrant_change", args=(quote(grant.pk),))
    assert browser.post(change, form_of(browser, change, scopes="", organization_usage="allow")).status_code == 302
    grant.refresh_from_db()
    assert (grant.scopes, grant.settings) == ([], {"organization_usage": "allow"})


def test_the_form_of_an_api_shows_the_binding_of_its_tokens(browser: Browser, tenant: Tenant) -> None:
    api = create_api_resource(tenant_id=tenant.pk, identifier="https://bank.example.test")
    change = reverse("admin:authapi_apiresource_change", args=(quote(api.pk),))
    wrong = browser.post(change, form_of(browser, change, possession_required_for="all_clients"))
    assert (wrong.status_code, list(wrong.context["adminform"].form.errors)) == (200, ["possession_mechanism"])
    asked = {"possession_mechanism": "dpop", "possession_required_for": "public_clients"}
    assert browser.post(change, form_of(browser, change, **asked)).status_code == 302
    api.refresh_from_db()
    assert api.settings["proof_of_possession"] == {"mechanism": "dpop", "required": True, "required_for": "public_clients"}
    assert browser.post(change, form_of(browser, change, possession_mechanism="", possession_required_for="")).status_code == 302
    api.refresh_from_db()
    assert "proof_of_possession" not in api.settings


def test_the_form_of_an_api_accepts_types_of_authorization_details_and_explains_errors(browser: Browser, tenant: Tenant) -> None:
    api = create_api_resource(tenant_id=tenant.pk, identifier="https://bank.example.test")
    change = reverse("admin:authapi_apiresource_change", args=(quote(api.pk),))

    def problems(text: str) -> list[str]:
        answer = browser.post(change, form_of(browser, change, authorization_details=text))
        assert answer.status_code == 200
        errors = answer.context["adminform"].form.errors
        assert list(errors) == ["authorization_details"]
        return list(errors["authorization_details"])

    assert problems('{"type": "payment"}') == ["Enter a JSON list: values in square brackets."]
    assert problems('[{"type": "payment"}, {"name": "x"}]') == ["Type 2: name: Additional properties not allowed."]
    assert problems('[{"type": "payment", "sentence": "Pay {"}]') == [
        "Type 1 (payment): Unmatched brace in the sentence. Write {member} for a value."
    ]
    types = [{"type": "payment", "sentence": "Pay {amount}", "schema": {"required": ["amount"]}}]
    assert browser.post(change, form_of(browser, change, authorization_details=json.dumps(types))).status_code == 302
    api.refresh_from_db()
    assert api.settings["authorization_details"] == types
    assert "&quot;Pay {amount}&quot;" in browser.get(change).content.decode()
    assert browser.post(change, form_of(browser, change, authorization_details="")).status_code == 302
    api.refresh_from_db()
    assert "authorization_details" not in api.settings


def test_the_form_enables_client_registration_and_sets_the_format_of_user_codes(browser: Browser, tenant: Tenant) -> None:
    add = reverse("admin:authapi_tenantsettings_add")
    wrong = browser.post(add, form_of(browser, add, device_charset="digits", device_mask="****-****"))
    assert "At least 9 asterisks" in wrong.content.decode()
    assert not TenantSettings.objects.of(tenant.pk).exists()

    browser.post(add, form_of(browser, add, takes_registrations="on", device_charset="digits", device_mask="***-***-***"))

    values = TenantSettings.objects.of(tenant.pk).get().values
    assert values["flags"] == {"enable_dynamic_client_registration": True}
    assert values["device_flow"] == {"charset": "digits", "mask": "***-***-***"}
    remembered_settings.clear()
    assert sign_in_settings(tenant.pk).requires_initial_token


def test_the_page_of_a_consent_shows_the_allowed_details(browser: Browser, ada: User, shop: Client) -> None:
    consent = make_consent(ada, shop)
    Consent.objects.of(ada.tenant_id).filter(pk=consent.pk).update(asked={"details": [{"type": "payment", "payee": "<b>Mallory</b>"}]})
    page = browser.get(reverse("admin:authapi_consent_change", args=(consent.pk,))).content.decode()
    assert "&quot;payee&quot;: &quot;&lt;b&gt;Mallory&lt;/b&gt;&quot;" in page
