"""Every page of the admin that writes adds an entry to the audit log. The tests open the pages of every registered model."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.db import connection, models
from django.test import Client
from django.urls import reverse

from authapi.models import Client as AuthClient
from config.audited_models import NOT_WATCHED, OF_PEOPLE
from config.console.admin_site import site
from identity.admin.object_actions import ObjectActionsAdmin
from identity.admin.tenant_scope import ReadOnlyAdmin
from identity.audit import row_audit
from identity.models import AuditEntry, Staff, Tenant, User
from tests.factories.admin import PASSWORD, Rows, browser_of, new_staff, new_tenant
from tests.management import Management

MODELS = sorted(site._registry, key=lambda model: model._meta.label_lower)
WRITABLE = [model for model in MODELS if not isinstance(site.get_model_admin(model), ReadOnlyAdmin)]
# All actions. Actions on users and tenants come last, because some of them end or delete rows that other actions need. For the same
# reason, suspensions and deletions come last within each group.
ACTIONS = sorted(
    ((model, action) for model in MODELS for action in getattr(site.get_model_admin(model), "object_actions", ())),
    key=lambda found: (found[0] in (User, Tenant), found[1].name in ("suspend", "delete")),
)
# Text fields that accept any change. The test changes the first of these fields that a form has.
_TEXTS = ("display_name", "description", "nickname", "name", "friendly_name")
# Values that a form requires and that a generated row does not have.
_NEEDED = {"authapi.client": {"grant_types": "client_credentials"}}


@pytest.fixture
def rows(committed_db: None) -> Rows:
    return Rows(new_tenant())


@pytest.fixture
def staff(rows: Rows) -> Staff:
    return new_staff(rows.tenant)


@pytest.fixture
def browser(staff: Staff) -> Client:
    return browser_of(staff)


def label(model: type[models.Model]) -> str:
    return model._meta.label_lower


def place(model: type[models.Model], page: str, key: Any = None) -> str:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
    return reverse(name, args=() if key is None else (quote(key),))


def form_of(page: Any) -> dict[str, Any]:
    """Return the values that a browser sends if the user changes nothing on the page."""
    context = page.context
    form = context["adminform"].form if "adminform" in context else context["form"]
    return {form.add_prefix(name): value for name in form.fields if (value := form[name].value()) not in (None, False)}


def is_refused(answer: Any) -> bool:
    """Report whether the form of a page, or a form above one of its tables, has errors."""
    context = answer.context or {}
    beside = [panel.form.form for panel in (context.get("panels") or ()) if panel.form is not None]
    return any(form is not None and form.errors for form in (context.get("form"), *beside))


def entries(rows: Rows, **about: Any) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(tenant_id=rows.tenant.pk, **about).order_by("pk"))


def test_every_model_that_a_page_writes_is_audited() -> None:
    assert [label(model) for model in WRITABLE if model not in row_audit.watched()] == []


def test_every_model_that_is_listed_as_not_audited_exists_and_has_a_reason() -> None:
    ours = {label(model) for name in ("identity", "authapi", "events", "provisioning") for model in apps.get_app_config(name).get_models()}

    assert set(NOT_WATCHED) <= ours
    assert ours >= OF_PEOPLE
    assert all(NOT_WATCHED.values())


def test_a_change_on_any_page_adds_one_entry_with_the_old_and_new_values(rows: Rows, staff: Staff, browser: Client) -> None:
    tried = []
    for model in WRITABLE:
        row = rows.of(model)
        page = browser.get(place(model, "change", row.pk))
        values = form_of(page) if page.status_code == 200 else {}
        field = next((name for name in _TEXTS if name in values), None)
        text = f"x{secrets.token_hex(4)}"
        # Streams require a deployed action; the tests of the stream form cover them.
        if field is None or label(model) == "events.eventstream":
            continue
        sent = {**values, **_NEEDED.get(label(model), {}), field: text}
        answer = browser.post(place(model, "change", row.pk), sent, REMOTE_ADDR="192.0.2.9", headers={"user-agent": "Test 1"})
        assert answer.status_code == 302, (label(model), answer.context["adminform"].form.errors)
        [noted] = entries(rows, object_type=label(model), object_id=str(row.pk), kind="change")
        assert text in str(noted.after), label(model)
        assert text not in str(noted.before), label(model)
        assert (noted.actor_kind, noted.actor_name, noted.ip, noted.user_agent) == ("staff", staff.email, "192.0.2.9", "Test 1")
        tried.append(label(model))

    assert {"identity.user", "identity.connection", "identity.role", "authapi.client", "provisioning.action"} <= set(tried)


def test_a_deletion_on_any_page_adds_an_entry_with_the_deleted_values(rows: Rows, staff: Staff, browser: Client) -> None:
    made = {model: rows.of(model) for model in MODELS if getattr(site.get_model_admin(model), "tenant_column", None)}
    tried = []
    # Delete relations first, because deleting a related row also deletes the relation.
    for model in sorted(WRITABLE, key=lambda model: -len([one for one in model._meta.fields if one.is_relation])):
        row = made[model]
        answer = browser.post(place(model, "delete", row.pk), {"post": "yes"})
        if answer.status_code in (403, 404) or type(row)._base_manager.filter(pk=row.pk).exists():
            continue
        [noted] = entries(rows, object_type=label(model), object_id=str(row.pk), kind="delete")
        assert noted.before, label(model)
        assert noted.after is None, label(model)
        assert noted.actor_name == staff.email
        tried.append(label(model))

    assert {"identity.groupmember", "identity.userrole", "identity.user", "authapi.clientgrant", "events.eventstream"} <= set(tried)


def test_a_button_on_any_page_adds_an_entry_with_its_name_and_reason(rows: Rows, browser: Client) -> None:
    operator, tried = browser_of(new_staff(None)), []
    for model, action in ACTIONS:
        row = rows.of(model)
        acting = operator if action.for_operators_only else browser
        address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_action", args=(quote(row.pk), action.name))
        asked = acting.get(address)
        # The page has no such button for a row in this state, or an earlier button has deleted the row.
        if asked.status_code != 200:
            continue
        answer = acting.post(address, {**form_of(asked), "reason": "because of a test"})
        if is_refused(answer):
            continue
        noted = entries(rows, act=action.label, actor_kind="staff")
        assert noted, (label(model), action.name)
        if "reason" in action.form_class.base_fields:
            assert {entry.reason for entry in noted} == {"because of a test"}, action.name
        tried.append(action.name)

    assert len(tried) > 15, tried
    assert {"block", "end", "lift", "acknowledge", "rotate-secret", "suspend"} <= set(tried)


def test_the_audit_tests_cover_enough_actions_and_every_page_that_writes() -> None:
    assert len(ACTIONS) > 30
    assert len(WRITABLE) > 20
    assert all(isinstance(site.get_model_admin(model), ObjectActionsAdmin) for model in WRITABLE)


def test_a_refused_action_adds_no_entry(rows: Rows) -> None:
    user = rows.of(User)
    auditor = browser_of(new_staff(rows.tenant, role="auditor"))
    before = len(entries(rows))

    assert auditor.post(place(User, "change", user.pk), {"nickname": "new"}).status_code == 403
    assert auditor.post(place(User, "delete", user.pk), {"post": "yes"}).status_code == 403

    assert len(entries(rows)) == before


def test_a_form_without_changes_adds_no_entry(rows: Rows, browser: Client) -> None:
    user = rows.of(User)
    address = place(User, "change", user.pk)

    assert browser.post(address, form_of(browser.get(address))).status_code == 302

    assert entries(rows) == []


def test_the_log_table_of_django_admin_stays_empty(rows: Rows, browser: Client) -> None:
    user = rows.of(User)

    browser.post(place(User, "delete", user.pk), {"post": "yes"})

    assert entries(rows, kind="delete")
    assert not LogEntry.objects.filter(object_id=str(user.pk)).exists()


def test_each_row_of_a_list_action_gets_an_entry_with_the_name_of_the_action(rows: Rows, browser: Client) -> None:
    user = rows.of(User)

    confirmed = {"confirmed": "yes", "shown": "1", "reason": "Asked to"}
    browser.post(place(User, "changelist"), {"action": "block_selected", "_selected_action": [str(user.pk)], **confirmed})

    [noted] = entries(rows, object_id=str(user.pk))
    assert (noted.act, noted.reason, noted.before, noted.after) == (
        "Block selected users",
        "Asked to",
        {"blocked": None},
        {"blocked": True},
    )


def test_the_audit_log_contains_no_secret_that_is_sent_through_the_admin(rows: Rows, browser: Client) -> None:
    password, option = f"Planted-{secrets.token_hex(8)}-1", f"planted-{secrets.token_hex(8)}"
    user, account = rows.of(User), new_staff(rows.tenant)
    address = place(User, "change", user.pk)
    metadata = f'{{"api_key": "{option}", "colour": "green"}}'
    changed = {**form_of(browser.get(address)), "password": password, "app_metadata": metadata}

    assert browser.post(address, changed).status_code == 302
    browser.post(place(Staff, "change", account.pk), {"is_active": "on", "role": account.role, "password": password})
    adding = f"{place(AuthClient, 'add')}?kind=all"
    created = browser.post(adding, {**form_of(browser.get(adding)), "name": "planted"}, follow=True)

    stored = _secrets_of(rows) | {password, option, PASSWORD}
    assert created.status_code == 200
    assert len(stored) > 5
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(entry::text, ' ') FROM identity_auditentry entry WHERE tenant_id = %s", [rows.tenant.pk])
        [written] = cursor.fetchone()
    assert "green" in written
    assert {"identity.passwordcredential", "identity.staff", "authapi.client"} <= {entry.object_type for entry in entries(rows)}
    assert [secret for secret in stored if secret in written] == []


def _secrets_of(rows: Rows) -> set[str]:
    """Return every hash, digest and sealed value that the database stores for the tenant."""
    statements = (
        "SELECT password_hash FROM identity_passwordcredential c JOIN identity_user u ON u.id = c.user_id WHERE u.tenant_id = %s",
        "SELECT password FROM identity_staff WHERE tenant_id = %s",
        "SELECT secret_digest FROM authapi_client WHERE tenant_id = %s",
        "SELECT sealed_secret FROM authapi_client WHERE tenant_id = %s",
        "SELECT sealed_private_key FROM authapi_signingkey WHERE tenant_id = %s",
    )
    with connection.cursor() as cursor:
        cursor.execute(" UNION ".join(statements), [rows.tenant.pk] * len(statements))
        return {text for (text,) in cursor.fetchall() if text}


def test_the_audit_log_records_what_a_client_changes_at_roles_but_not_at_users(rows: Rows) -> None:
    api = Management(rows.tenant)

    assert api.post("roles", {"name": "noted", "type": "tenant"}).status == 200
    assert api.call("PATCH", f"users/{rows.of(User).user_id.replace('|', '%7C')}", body={"nickname": "new"}).status == 200

    noted = entries(rows, actor_kind="client")
    assert [(entry.object_type, entry.kind, entry.act) for entry in noted] == [("identity.role", "add", "Management interface")]
    assert noted[0].actor_name
