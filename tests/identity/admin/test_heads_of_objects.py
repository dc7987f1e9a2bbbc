"""The header on the pages of groups, roles and organizations, with links to the forms on the tabs, to events, and to the deletion page."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.admin.utils import quote
from django.db import models
from django.test import Client
from django.urls import reverse

from identity.models import Connection, Group, Organization, Role, Tenant
from identity.services.roles import create_role
from identity.staff_roles import AUDITOR
from tests.factories.admin import browser_of, new_staff, take_from_administrators
from tests.factories.organizations import make_group, make_organization, make_role


@pytest.fixture
def group(tenant: Tenant) -> Group:
    return make_group(tenant, "Engineers")


@pytest.fixture
def role(tenant: Tenant) -> Role:
    return make_role(tenant, "Author")


@pytest.fixture
def organization(tenant: Tenant) -> Organization:
    return make_organization(tenant, "engines")


def page(row: models.Model, name: str = "change") -> str:
    return reverse(f"admin:identity_{row._meta.model_name}_{name}", args=(quote(row.pk),))


def head_of(browser: Client, row: models.Model, tab: str = "") -> str:
    shown = browser.get(page(row), {"tab": tab} if tab else {})
    assert shown.status_code == 200
    return shown.content.decode().partition('<header class="object-header">')[2].partition("</header>")[0]


def primary_of(head: str) -> tuple[str, str] | None:
    """Return the text and the URL of the button in the header, or None if the header has no button."""
    found = re.findall(r'<a class="button" href="([^"]*)">([^<]*)</a>', head)
    assert len(found) <= 1
    return (found[0][1], unescape(found[0][0])) if found else None


def menu_of(head: str) -> list[str]:
    return re.findall(r">([^<>]+)</a>\s*</li>", head)


def test_the_button_of_a_group_leads_to_the_field_that_adds_a_member(browser: Client, group: Group) -> None:
    primary = primary_of(head_of(browser, group))
    assert primary == ("Add member", f"{page(group)}?tab=members#id_add-member-user")
    assert 'id="id_add-member-user"' in browser.get(primary[1].partition("#")[0]).content.decode()


@pytest.mark.parametrize(("tab", "text"), [("members", None), ("roles", "Add member")])
def test_the_header_has_no_link_to_a_form_of_the_open_tab(browser: Client, group: Group, tab: str, text: str | None) -> None:
    head = head_of(browser, group, tab)
    primary = primary_of(head)
    assert (primary and primary[0]) == text
    assert ("Assign role" in menu_of(head)) is (tab == "members")


def test_the_menu_of_a_group_has_its_roles_and_events_and_history_and_deletion(browser: Client, group: Group) -> None:
    head = head_of(browser, group)
    assert menu_of(head) == ["Assign role", "All events", "Live events", "History", "Delete"]
    for name in ("logentry_changelist", "live"):
        assert f"{reverse(f'admin:events_{name}')}?entity=group%3A{group.pk}" in head


def test_nested_groups_can_be_added_in_the_menu_of_a_group_of_a_directory(
    browser: Client, tenant: Tenant, database_connection: Connection
) -> None:
    directory = make_group(tenant, "Directory", type="connection", connection_id=database_connection.pk)
    assert "Add group" in menu_of(head_of(browser, directory))


def test_the_button_of_a_role_assigns_it_to_a_user_or_a_member(browser: Client, role: Role, organization: Organization) -> None:
    own = create_role(tenant_id=role.tenant_id, name="Own", type="organization", organization_id=organization.pk)

    assert primary_of(head_of(browser, role)) == ("Assign to user", f"{page(role)}?tab=users#id_assign-to-user-user")
    assert menu_of(head_of(browser, role, "groups")) == ["Assign to member", "Add permission", "History", "Delete"]
    assert primary_of(head_of(browser, own)) == ("Assign to member", f"{page(own)}?tab=users#id_assign-to-member-organization")
    assert menu_of(head_of(browser, own)) == ["Add permission", "History", "Delete"]


def test_the_header_of_an_organization_has_links_to_the_forms_on_its_tabs(browser: Client, organization: Organization) -> None:
    head = head_of(browser, organization)
    assert primary_of(head) == ("Add member", f"{page(organization)}?tab=members#id_add-member-user")
    assert menu_of(head)[:2] == ["Add connection", "Invite"]


@pytest.mark.parametrize("permission", ["identity.add_groupmember", "identity.view_groupmember"])
def test_an_account_without_permission_for_members_sees_no_button_to_add_one(
    browser: Client, group: Group, monkeypatch: pytest.MonkeyPatch, permission: str
) -> None:
    take_from_administrators(monkeypatch, permission)
    head = head_of(browser, group)
    assert primary_of(head) is None
    assert "Add member" not in head
    assert "Assign role" in head


def test_an_account_without_permission_for_events_or_deletion_sees_no_links_to_them(
    browser: Client, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_from_administrators(monkeypatch, "events.view_logentry", "identity.delete_group")
    assert menu_of(head_of(browser, group)) == ["Assign role", "History"]


@pytest.mark.parametrize("kind", ["group", "role", "organization"])
def test_an_auditor_sees_no_link_to_a_change_in_the_header(tenant: Tenant, request: pytest.FixtureRequest, kind: str) -> None:
    head = head_of(browser_of(new_staff(tenant, AUDITOR)), request.getfixturevalue(kind))
    assert primary_of(head) is None
    assert set(menu_of(head)) <= {"All events", "Live events", "History"}


@pytest.mark.parametrize("tab", ["", "members"])
def test_the_deletion_in_the_menu_opens_a_confirmation_page_and_deletes_nothing_yet(browser: Client, group: Group, tab: str) -> None:
    (address,) = re.findall(r'<a class="dangerous" href="([^"]*)">Delete</a>', head_of(browser, group, tab))

    assert address == page(group, "delete")
    assert browser.get(address).status_code == 200
    assert Group.objects.of(group.tenant_id).filter(pk=group.pk).exists()
