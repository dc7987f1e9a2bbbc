"""The pages of an action: the mapping table, tests and versions. Every page works without scripts."""

from __future__ import annotations

import html
import re
from dataclasses import asdict
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from foundation.expressions.functions import NAMES
from foundation.expressions.language import compile_expression
from identity.models import Connection, Staff, Tenant, User
from provisioning.actions.setups import draft_setup
from provisioning.admin.function_help import FUNCTIONS
from provisioning.mapping.table import DEFAULT_TABLE
from provisioning.models import Action, ActionVersion, Trial
from provisioning.services.actions import create_action, update_action
from provisioning.trials.mapping_preview import mapping_preview
from tests.factories.admin import browser_of, new_staff, new_tenant
from tests.factories.models.identity import UserFactory
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import TOKEN, RealServer, misbehaving_server, reply, running_scim_server


@pytest.fixture(autouse=True)
def _plain(settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = False


@pytest.fixture
def staff(tenant: Tenant) -> Staff:
    return new_staff(tenant)


@pytest.fixture
def browser(staff: Staff) -> Client:
    return browser_of(staff)


@pytest.fixture
def action(tenant: Tenant) -> Action:
    return action_at(tenant, "http://127.0.0.1:9/v2")


@pytest.fixture
def anna(tenant: Tenant, database_connection: Connection) -> User:
    return UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test", nickname="<b>ä</b>")


def action_at(tenant: Tenant, base_url: str) -> Action:
    secrets = {"SCIM_BASE_URL": base_url, "SCIM_BEARER_TOKEN": TOKEN, "SCIM_MAX_RETRIES": "0"}
    return ActionFactory.create(tenant_id=tenant.pk, name="to scim", template="scim-user-provisioning", secrets=secrets, deploy=True)


def page(action: Action, name: str) -> str:
    return reverse(f"admin:provisioning_action_{name}", args=(quote(action.pk),))


def table_of(rows: list[dict[str, Any]], **buttons: Any) -> dict[str, Any]:
    """Return the form data of a mapping table with these rows and buttons."""
    sent: dict[str, Any] = {"rows-TOTAL_FORMS": len(rows), "rows-INITIAL_FORMS": 0, "operation": "update", **buttons}
    for number, row in enumerate(rows):
        filled = {"when": "both", "if_empty": "omit", "enabled": True, "ORDER": number + 1, **row}
        sent |= {f"rows-{number}-{name}": "on" if value is True else value for name, value in filled.items() if value is not False}
    return sent


ROWS: list[dict[str, Any]] = [{"path": "externalId", "source": "user_id"}, {"path": "userName", "source": "email"}]


def test_the_mapping_table_shows_the_default_rows_and_every_function(browser: Client, action: Action) -> None:
    shown = html.unescape(browser.get(page(action, "mapping")).content.decode())
    assert all(f'value="{row.path}"' in shown for row in DEFAULT_TABLE)
    assert "This is the default mapping." in shown
    assert all(example in shown for example, _ in FUNCTIONS)


def test_the_help_lists_every_function_with_a_valid_example() -> None:
    examples = " ".join(example for example, _ in FUNCTIONS)
    assert {name for name in NAMES if f"{name}(" not in examples} == set()
    for example, _ in FUNCTIONS:
        for expression in [example] if "n)" not in example or "(n)," not in example else example.split(", "):
            compile_expression(expression)


def test_rows_can_be_reordered_removed_and_added_without_scripts(browser: Client, action: Action) -> None:
    rows = [
        *ROWS,
        {"path": "title", "source": "'x'", "DELETE": True},
        {"path": "nickName", "source": "upper(nickname)", "ORDER": 0, "enabled": False},
    ]
    answer = browser.post(page(action, "mapping"), table_of(rows, save="1"))
    assert answer.status_code == 302, answer.content.decode()
    action.refresh_from_db()
    assert [(row["path"], row["enabled"]) for row in action.mapping or []] == [
        ("nickName", False),
        ("externalId", True),
        ("userName", True),
    ]
    shown = browser.get(page(action, "mapping")).content.decode()
    assert shown.index('value="nickName"') < shown.index('value="externalId"')


def test_errors_are_shown_at_their_rows_and_no_row_is_saved(browser: Client, action: Action) -> None:
    rows = [ROWS[0], {"path": "na me", "source": "email"}, {"path": "title", "source": "nope(name)"}]
    answer = browser.post(page(action, "mapping"), table_of(rows, save="1"))
    shown = html.unescape(answer.content.decode())
    assert answer.status_code == 200
    cells = re.findall(r"<tr>.*?</tr>", shown, re.DOTALL)
    assert any("is not a path such as" in cell and 'value="na me"' in cell for cell in cells)
    assert any("There is no function nope()" in cell and 'value="title"' in cell for cell in cells)
    assert (
        browser.post(page(action, "mapping"), table_of(ROWS[:1], save="1")).content.decode().count("needs an enabled row for userName") == 1
    )
    action.refresh_from_db()
    assert action.mapping is None


def test_more_rows_can_be_requested_and_entered_values_are_kept(browser: Client, action: Action) -> None:
    shown = browser.post(page(action, "mapping"), table_of([{"path": "userName", "source": "odd ("}], more="1")).content.decode()
    assert 'name="rows-3-path"' in shown
    assert 'value="odd ("' in shown
    action.refresh_from_db()
    assert action.mapping is None


def test_a_table_that_equals_the_default_mapping_is_saved_as_the_default(browser: Client, action: Action) -> None:
    update_action(tenant_id=action.tenant_id, action_id=action.pk, changes={"mapping": ROWS})
    assert browser.post(page(action, "mapping"), table_of(ROWS, reset="1")).status_code == 302
    action.refresh_from_db()
    assert action.mapping is None
    browser.post(page(action, "mapping"), table_of([asdict(row) for row in DEFAULT_TABLE], save="1"))
    action.refresh_from_db()
    assert (action.mapping, action.options) == (None, {})


def test_the_preview_shows_that_a_user_is_outside_the_scope_or_that_the_scope_fails(browser: Client, action: Action, anna: User) -> None:
    note = "The scope of the action does not include this user"
    for scope, shown in {"email_verified": note, "!email_verified": "Request", "email": "neither true nor false"}.items():
        update_action(tenant_id=action.tenant_id, action_id=action.pk, changes={"options": {"scope": scope}})
        answer = browser.post(page(action, "mapping"), table_of(ROWS, preview="1", user=anna.user_id)).content.decode()
        assert (shown in answer, note in answer) == (True, scope == "email_verified")


def test_saving_the_table_warns_about_an_attribute_outside_the_schemas(browser: Client, action: Action) -> None:
    rows = [*ROWS, {"path": "favoriteColor", "source": "nickname", "when": "both", "if_empty": "omit", "enabled": True}]
    saved = browser.post(page(action, "mapping"), table_of(rows, save="1"), follow=True).content.decode()
    assert "RFC 7643 has no attribute favoriteColor" in saved
    refused = browser.post(page(action, "mapping"), table_of([*rows[:-1], {**rows[-1], "path": "name.first"}], save="1")).content.decode()
    assert "name has no part first" in refused


def test_the_preview_shows_the_request_and_saves_nothing(browser: Client, action: Action, anna: User) -> None:
    rows = [*ROWS, {"path": "nickName", "source": "nickname"}]
    answer = browser.post(page(action, "mapping"), table_of(rows, preview="1", user="anna@example.test"))
    found = re.search(r'<pre class="json" id="preview" tabindex="0">(.*?)</pre>', answer.content.decode(), re.DOTALL)
    assert found is not None
    sent = mapping_preview(draft_setup(action), user_id=anna.user_id, operation="update", mapping=rows).body.decode()
    assert html.unescape(found[1]) == sent
    assert "<b>ä</b>" not in answer.content.decode()
    action.refresh_from_db()
    assert action.mapping is None
    nobody = browser.post(page(action, "mapping"), table_of(rows, preview="1", user="nobody@example.test"))
    assert "The user does not exist." in nobody.content.decode()


def test_the_enterprise_option_adds_the_rows_of_the_extension(
    browser: Client, action: Action, tenant: Tenant, database_connection: Connection
) -> None:
    user = UserFactory.create(
        tenant_id=tenant.pk, connection=database_connection, email="e@example.test", app_metadata={"department": "Tools"}
    )
    default = [asdict(row) for row in DEFAULT_TABLE]
    off = browser.post(page(action, "mapping"), table_of(default, preview="1", user=user.user_id)).content.decode()
    on = browser.post(page(action, "mapping"), table_of(default, preview="1", user=user.user_id, enterprise="on")).content.decode()
    assert ("Tools" in off, "Tools" in on) == (False, True)
    browser.post(page(action, "mapping"), table_of(default, save="1", enterprise="on"))
    action.refresh_from_db()
    assert (action.options, action.mapping) == ({"enterprise": True}, None)


def test_a_malformed_form_changes_nothing(browser: Client, action: Action) -> None:
    for odd in ({}, {"rows-TOTAL_FORMS": "9" * 30, "more": "1"}, {"rows-TOTAL_FORMS": "-1", "rows-INITIAL_FORMS": "0", "save": "1"}):
        assert browser.post(page(action, "mapping"), odd).status_code == 200
    action.refresh_from_db()
    assert action.mapping is None


def test_a_saved_draft_must_be_deployed_and_an_earlier_version_can_be_restored(browser: Client, action: Action) -> None:
    change = reverse("admin:provisioning_action_change", args=(quote(action.pk),))
    browser.post(page(action, "mapping"), table_of(ROWS, save="1"))
    shown = browser.get(change).content.decode()
    assert "Version 1; the draft has changes that are not deployed" in shown
    deploy = reverse("admin:provisioning_action_action", args=(quote(action.pk), "deploy"))
    assert "instead of version 1." in browser.get(deploy).content.decode()
    browser.post(deploy)
    assert ActionVersion.objects.get(action=action, is_deployed=True).number == 2

    first = ActionVersion.objects.get(action=action, number=1)
    version_page = browser.get(reverse("admin:provisioning_actionversion_change", args=(quote(first.pk),))).content.decode()
    assert "SCIM_BASE_URL, SCIM_BEARER_TOKEN" in version_page
    assert first.secrets[0]["sealed"] not in version_page
    browser.post(reverse("admin:provisioning_actionversion_action", args=(quote(first.pk), "deploy")), {"update_draft": "on"})
    action.refresh_from_db()
    assert (ActionVersion.objects.get(action=action, is_deployed=True).number, action.mapping) == (3, None)


def test_a_connection_test_shows_its_steps_and_the_source_addresses(
    browser: Client, tenant: Tenant, staff: Staff, settings: Settings
) -> None:
    settings.OUTBOUND_ADDRESSES = ["eu=203.0.113.7"]
    with running_scim_server() as server:
        action = action_at(tenant, server.base_url)
        assert "203.0.113.7" in browser.get(page(action, "connection-test")).content.decode()
        shown = browser.post(page(action, "connection-test"), {"with_write_check": "on"}).content.decode()
        assert server.users() == []
    assert "Update by PATCH per attribute" in shown
    assert "Recommended update mode" in shown
    assert TOKEN not in shown
    trial = Trial.objects.get(action=action)
    assert (trial.kind, trial.actor) == ("canary", staff.email)
    assert str(trial.pk) in browser.get(reverse("admin:provisioning_trial_change", args=(quote(trial.pk),))).content.decode()


def test_a_failed_test_gives_advice_and_never_shows_the_token(browser: Client, tenant: Tenant) -> None:
    with misbehaving_server(lambda request: reply(401, raw=f"<script>{TOKEN}</script>".encode(), headers={"X-Echo": TOKEN})) as server:
        action = action_at(tenant, server.base_url)
        shown = browser.post(page(action, "connection-test")).content.decode()
    assert "enter SCIM_BEARER_TOKEN again" in shown
    everything = shown + browser.get(reverse("admin:provisioning_action_change", args=(quote(action.pk),))).content.decode()
    everything += browser.get(reverse("admin:provisioning_trial_changelist")).content.decode()
    assert TOKEN not in everything


def test_a_dry_run_shows_the_difference_and_a_run_writes_it(browser: Client, tenant: Tenant, anna: User) -> None:
    with running_scim_server() as server:
        action = action_at(tenant, server.base_url)
        server.add(externalId=anna.user_id, userName="old@example.test")
        dry = browser.post(page(action, "user-run"), {"user": "anna@example.test"}).content.decode()
        assert "Changes on the server" in dry
        assert "old@example.test" in dry
        assert name_of(server, anna) == "old@example.test"
        done = browser.post(page(action, "user-run"), {"user": anna.user_id, "write": "on"}).content.decode()
        assert "Done: updated." in done
        assert name_of(server, anna) == "anna@example.test"
    refused = browser.post(page(action, "user-run"), {"user": anna.user_id, "write": "on", "draft": "on"}).content.decode()
    assert "Deploy the action first" in refused


def name_of(server: RealServer, user: User) -> Any:
    found = server.user(user.user_id)
    assert found is not None
    return found["userName"]


def test_pages_of_an_action_of_another_tenant_are_not_found(browser: Client, anna: User) -> None:
    stranger = action_at(new_tenant(), "http://127.0.0.1:9/v2")
    for name in ("mapping", "connection-test", "user-run"):
        assert browser.get(page(stranger, name)).status_code == 404
        assert browser.post(page(stranger, name), {"user": anna.user_id, "write": "on"}).status_code == 404
    assert not Trial.objects.filter(action=stranger).exists()


def test_no_page_finds_a_user_of_another_tenant(browser: Client, action: Action) -> None:
    other = new_tenant()
    connection = Connection.objects.of(other.pk).create(tenant=other, name="people", strategy="database")
    foreign = UserFactory.create(tenant_id=other.pk, connection=connection, email="foreign@example.test")
    for user in (foreign.user_id, "foreign@example.test"):
        answer = browser.post(page(action, "user-run"), {"user": user})
        assert "The user does not exist." in answer.content.decode()
        assert "The user does not exist." in browser.post(page(action, "mapping"), table_of(ROWS, preview="1", user=user)).content.decode()


def test_an_action_with_an_entry_point_has_neither_mapping_nor_connection_test(browser: Client, tenant: Tenant) -> None:
    path = "provisioning.actions.event_stream.v1.ScimUserProvisioning"
    own = create_action(tenant_id=tenant.pk, name="own", entry_point_path=path)
    assert browser.get(page(own, "mapping")).status_code == 404
    assert "Test connection" not in browser.get(reverse("admin:provisioning_action_change", args=(quote(own.pk),))).content.decode()
