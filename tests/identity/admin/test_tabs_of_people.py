"""The tabs of organizations, users, groups and roles: what their forms add and refuse, and to which page a form redirects."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.contrib.admin.utils import quote
from django.db import connection, models
from django.forms import Select
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.text import slugify
from pytest_django import DjangoAssertNumQueries

from events.models import Event
from identity.admin.row_forms import MOST_CHOICES, RowField
from identity.models import (
    Connection,
    Group,
    GroupMember,
    GroupRole,
    Organization,
    OrganizationConnection,
    OrganizationGroupRole,
    OrganizationMember,
    OrganizationMemberRole,
    Role,
    Tenant,
    User,
    UserRole,
)
from identity.services.groups import add_group_members
from identity.services.memberships import add_members, assign_member_roles
from identity.services.roles import assign_user_roles
from identity.staff_roles import AUDITOR
from tests.factories.admin import browser_of, new_staff, new_tenant, take_from_administrators
from tests.factories.identity import make_connection, make_user
from tests.factories.models.identity import RoleFactory, UserFactory
from tests.factories.organizations import make_group, make_organization, make_role


@pytest.fixture
def user(database_connection: Connection) -> User:
    return UserFactory.create(
        tenant_id=database_connection.tenant_id, connection=database_connection, email="ada@example.test", name="Ada Lovelace"
    )


@pytest.fixture
def organization(tenant: Tenant) -> Organization:
    return make_organization(tenant, "acme")


def page(row: models.Model, tab: str = "") -> str:
    place = reverse(f"admin:identity_{row._meta.model_name}_change", args=(quote(row.pk),))
    return f"{place}?{urlencode({'tab': slugify(tab)})}" if tab else place


def act(row: models.Model, name: str) -> str:
    return reverse(f"admin:identity_{row._meta.model_name}_action", args=(quote(row.pk), name))


def typed(name: str, **values: object) -> dict[str, object]:
    """Return the fields as the browser sends them from the form `name` of a tab."""
    return {f"{name}-{field}": value for field, value in values.items()}


def add(browser: Client, row: models.Model, name: str, **values: object) -> object:
    return browser.post(act(row, name), typed(name, **values))


# Adding rows on a tab


@pytest.mark.parametrize("entered", ["ada@example.test", "ADA@example.test", "id"])
def test_a_member_is_added_by_address_or_id_and_the_tab_opens_again(
    browser: Client, organization: Organization, user: User, entered: str
) -> None:
    answer = browser.post(act(organization, "add-member"), typed("add-member", user=user.user_id if entered == "id" else entered))

    assert answer.headers["location"] == page(organization, "Members")
    assert OrganizationMember.objects.of(user.tenant_id).get().user == user
    assert Event.objects.filter(tenant_id=user.tenant_id, type="organization.member.added").count() == 1


def test_a_refused_member_is_explained_at_the_field_of_the_same_tab(browser: Client, organization: Organization) -> None:
    answer = browser.post(act(organization, "add-member"), typed("add-member", user="nobody@example.test"))

    shown = answer.content.decode()
    assert [tab.label for tab in answer.context["tabs"] if tab.is_current] == ["Members"]
    assert answer.context["panels"][0].form.form.errors == {"user": ["No user has this email address or user id."]}
    assert 'value="nobody@example.test"' in shown
    assert f'href="{page(organization)}?tab=connections"' in shown
    assert not OrganizationMember.objects.of(organization.tenant_id).exists()


def test_an_email_address_of_several_users_is_refused_with_a_request_for_an_id(
    browser: Client, tenant: Tenant, organization: Organization, user: User
) -> None:
    other = make_user(connection=make_connection(tenant_id=tenant.pk, name="second"), email="ada@example.test")

    answer = browser.post(act(organization, "add-member"), typed("add-member", user="ada@example.test"))

    (error,) = answer.context["panels"][0].form.form.errors["user"]
    assert user.user_id in error
    assert other.user_id in error
    assert not OrganizationMember.objects.of(tenant.pk).exists()


def test_no_user_role_or_connection_of_another_tenant_is_accepted(browser: Client, organization: Organization, user: User) -> None:
    other = new_tenant()
    stranger = make_user(connection=make_connection(tenant_id=other.pk), email="stranger@example.test")
    foreign_role = make_role(other, "Foreign")

    by_address = browser.post(act(organization, "add-member"), typed("add-member", user="stranger@example.test"))
    by_id = browser.post(act(organization, "add-member"), typed("add-member", user=stranger.user_id))
    role = browser.post(act(user, "add-role"), typed("add-role", role=foreign_role.pk))
    connection = browser.post(act(organization, "add-connection"), typed("add-connection", connection=stranger.connection_id))

    assert [answer.status_code for answer in (by_address, by_id, role, connection)] == [200] * 4
    assert "Foreign" not in role.content.decode()
    assert not OrganizationMember.objects.of(organization.tenant_id).exists()
    assert not UserRole.objects.of(organization.tenant_id).exists()
    assert not OrganizationConnection.objects.of(organization.tenant_id).exists()


def test_nothing_is_added_to_a_row_of_another_tenant(browser: Client, user: User) -> None:
    foreign = make_organization(new_tenant(), "foreign")

    assert browser.post(act(foreign, "add-member"), typed("add-member", user=user.user_id)).status_code == 404
    assert browser.get(page(foreign, "Members")).status_code == 404


def test_an_auditor_sees_the_members_and_cannot_add_or_remove_them(tenant: Tenant, organization: Organization, user: User) -> None:
    add_members(tenant_id=tenant.pk, organization_id=organization.pk, user_ids=[user.user_id])
    auditor = browser_of(new_staff(tenant, AUDITOR))

    shown = auditor.get(page(organization, "Members"))
    refused = auditor.post(act(organization, "add-member"), typed("add-member", user=user.user_id))

    assert "Ada Lovelace" in shown.content.decode()
    assert [panel.form for panel in shown.context["panels"]] == [None, None]
    assert "Remove" not in shown.content.decode()
    assert refused.status_code == 403


def test_an_account_sees_only_the_tables_and_forms_for_which_it_has_permissions(
    browser: Client, organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_from_administrators(monkeypatch, "identity.add_organizationmember", "identity.view_organizationmemberrole")

    (members,) = browser.get(page(organization, "Members")).context["panels"]
    assert members.form is None


def test_a_tab_without_visible_tables_says_that_the_account_has_no_permission(
    browser: Client, organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_from_administrators(monkeypatch, "identity.view_organizationconnection")

    assert "You do not have permission to see this part." in browser.get(page(organization, "Connections")).content.decode()


def test_members_roles_and_connections_of_an_organization_are_added_on_its_tabs(
    browser: Client, tenant: Tenant, organization: Organization, user: User, database_connection: Connection
) -> None:
    role, group = make_role(tenant, "Reader"), make_group(tenant, "Engineers")
    add(browser, organization, "add-member", user=user.user_id)
    add(browser, organization, "assign-member-role", user=user.email, role=role.pk)
    add(browser, organization, "add-connection", connection=database_connection.pk, assign_membership_on_login="on")
    add(browser, organization, "assign-group-role", group=group.pk, role=role.pk)

    assert OrganizationMemberRole.objects.of(tenant.pk).get().role == role
    assert OrganizationConnection.objects.of(tenant.pk).get().assign_membership_on_login
    assert OrganizationGroupRole.objects.of(tenant.pk).get().group == group
    assert "Reader" in browser.get(page(organization, "Members")).content.decode()


def test_a_role_of_another_organization_is_not_offered(browser: Client, tenant: Tenant, organization: Organization, user: User) -> None:
    add_members(tenant_id=tenant.pk, organization_id=organization.pk, user_ids=[user.user_id])
    other = RoleFactory.create(
        tenant_id=tenant.pk, name="Elsewhere", type="organization", organization_id=make_organization(tenant, "other").pk
    )

    answer = browser.post(act(organization, "assign-member-role"), typed("assign-member-role", user=user.user_id, role=other.pk))

    assert answer.context["panels"][1].form.form.errors == {"role": ["No object has this name or id."]}


def test_a_refusal_of_the_service_is_shown_on_the_tab(browser: Client, tenant: Tenant, organization: Organization, user: User) -> None:
    answer = browser.post(
        act(organization, "assign-member-role"), typed("assign-member-role", user=user.user_id, role=make_role(tenant).pk)
    )

    assert "not a member" in answer.content.decode()
    assert not OrganizationMemberRole.objects.of(tenant.pk).exists()


def test_roles_groups_and_organizations_of_a_user_are_added_on_the_access_tab(
    browser: Client, tenant: Tenant, organization: Organization, user: User
) -> None:
    group, role = make_group(tenant, "Engineers"), make_role(tenant, "Reader")
    add(browser, user, "add-organization", organization=organization.pk)
    add(browser, user, "add-group", group=group.pk)
    answer = browser.post(act(user, "add-role"), typed("add-role", role=role.pk))

    shown = browser.get(page(user, "Access"))
    assert answer.headers["location"] == page(user, "Access")
    assert [len(panel.rows) for panel in shown.context["panels"][:3]] == [1, 1, 1]
    assert shown.content.decode().count(">Remove</a>") == 3
    # The form offers neither roles that the user has nor groups that contain the user.
    forms = "".join(str(panel.form.form) for panel in shown.context["panels"][:3])
    assert not any(name in forms for name in (organization.pk, group.pk, role.pk))


def test_tabs_of_a_group_and_a_role_have_forms_that_add_rows(browser: Client, tenant: Tenant, user: User) -> None:
    group, role = make_group(tenant, "Engineers"), make_role(tenant, "Reader")
    add(browser, group, "add-member", user="ada@example.test")
    add(browser, group, "assign-role", role=role.pk)
    add(browser, role, "assign-to-user", user="ada@example.test")
    other = make_group(tenant, "Builders")
    add(browser, role, "assign-to-group", group=other.pk)

    assert GroupMember.objects.of(tenant.pk).get().user == user
    assert set(GroupRole.objects.of(tenant.pk).values_list("group", flat=True)) == {group.pk, other.pk}
    assert UserRole.objects.of(tenant.pk).get().user == user
    assert "Ada Lovelace" in browser.get(page(group, "Members")).content.decode()
    assert "Ada Lovelace" in browser.get(page(role, "Users")).content.decode()


def test_a_role_of_an_organization_can_be_assigned_only_to_its_members(browser: Client, tenant: Tenant, user: User) -> None:
    organization = make_organization(tenant, "acme")
    add_members(tenant_id=tenant.pk, organization_id=organization.pk, user_ids=[user.user_id])
    role = RoleFactory.create(tenant_id=tenant.pk, name="Editor", type="organization", organization_id=organization.pk)

    refused = browser.post(act(role, "assign-to-user"), typed("assign-to-user", user=user.user_id))
    add(browser, role, "assign-to-member", user=user.email, organization=organization.pk)

    assert refused.status_code == 403
    assert OrganizationMemberRole.objects.of(tenant.pk).get().user == user
    assert [panel.title for panel in browser.get(page(role, "Users")).context["panels"]] == ["Members with this role in an organization"]


def test_a_role_is_entered_by_name_if_a_list_would_be_too_long(browser: Client, tenant: Tenant, user: User) -> None:
    for number in range(MOST_CHOICES + 1):
        make_role(tenant, f"Role {number:03}")

    shown = browser.get(page(user, "Access")).content.decode()
    add(browser, user, "add-role", role="Role 042")

    assert "Role 042" not in shown
    assert UserRole.objects.of(tenant.pk).get().role.name == "Role 042"


# Redirects after a form


def test_a_removal_asks_for_confirmation_and_redirects_to_the_tab(browser: Client, organization: Organization, user: User) -> None:
    add_members(tenant_id=user.tenant_id, organization_id=organization.pk, user_ids=[user.user_id])
    removal = browser.get(page(organization, "Members")).context["panels"][0].rows[0][-1].url

    asked = browser.get(removal).content.decode()
    answer = browser.post(removal, {"post": "yes"})

    assert "Membership of Ada Lovelace (ada@example.test) in acme" in asked
    assert f'class="closelink" href="{page(organization, "Members")}"' in asked
    assert answer.headers["location"] == page(organization, "Members")
    assert not OrganizationMember.objects.of(user.tenant_id).exists()


@pytest.mark.parametrize("place", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)"])
def test_no_page_redirects_to_another_site(browser: Client, organization: Organization, user: User, place: str) -> None:
    add_members(tenant_id=user.tenant_id, organization_id=organization.pk, user_ids=[user.user_id])
    member = OrganizationMember.objects.of(user.tenant_id).get()
    removal = f"{reverse('admin:identity_organizationmember_delete', args=(member.pk,))}?{urlencode({'next': place})}"
    block = f"{act(user, 'block')}?{urlencode({'next': place})}"

    assert "evil" not in browser.get(removal).content.decode().partition("<main")[2]
    assert browser.post(block).headers["location"] == page(user)
    assert browser.post(removal, {"post": "yes"}).headers["location"] == reverse("admin:identity_organizationmember_changelist")


def test_saving_the_settings_of_a_connection_redirects_to_the_tab_of_connections(
    browser: Client, organization: Organization, database_connection: Connection
) -> None:
    add(browser, organization, "add-connection", connection=database_connection.pk)
    settings = browser.get(page(organization, "Connections")).context["panels"][0].rows[0][-2].url

    answer = browser.post(settings, {"assign_membership_on_login": "on", "is_enabled": "on"})

    assert answer.headers["location"] == page(organization, "Connections")
    assert OrganizationConnection.objects.of(organization.tenant_id).get().assign_membership_on_login


# The number of queries


def test_a_tab_makes_the_same_number_of_queries_for_many_rows_as_for_few(
    browser: Client,
    tenant: Tenant,
    organization: Organization,
    database_connection: Connection,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    role, group = make_role(tenant, "Reader"), make_group(tenant, "Engineers")

    def join(count: int) -> None:
        for _ in range(count):
            user = make_user(connection=database_connection)
            add_members(tenant_id=tenant.pk, organization_id=organization.pk, user_ids=[user.user_id])
            assign_member_roles(tenant_id=tenant.pk, organization_id=organization.pk, user_id=user.user_id, role_ids=[role.pk])
            assign_user_roles(tenant_id=tenant.pk, user_id=user.user_id, role_ids=[role.pk])
            add_group_members(tenant_id=tenant.pk, group_id=group.pk, user_ids=[user.user_id])

    pages = [page(organization, "Members"), page(role, "Users"), page(group, "Members")]
    lists = [
        reverse(f"admin:identity_{name}_changelist") for name in ("organizationmember", "organizationmemberrole", "userrole", "groupmember")
    ]
    join(2)
    counted = {place: _queries_of(browser, place) for place in (*pages, *lists)}
    join(6)
    for place, count in counted.items():
        with django_assert_num_queries(count):
            browser.get(place)


def _queries_of(browser: Client, place: str) -> int:
    browser.get(place)
    with CaptureQueriesContext(connection) as queries:
        browser.get(place)
    return len(queries)


# Names


def test_lists_show_users_by_name_and_address(browser: Client, organization: Organization, user: User) -> None:
    add_members(tenant_id=user.tenant_id, organization_id=organization.pk, user_ids=[user.user_id])
    row = OrganizationMember.objects.of(user.tenant_id).get()

    assert "Ada Lovelace (ada@example.test)" in browser.get(reverse("admin:identity_organizationmember_changelist")).content.decode()
    shown = browser.get(reverse("admin:identity_organizationmember_change", args=(row.pk,))).content.decode()
    assert f'<a href="{page(user)}">Ada Lovelace (ada@example.test)</a> <code>{user.user_id}</code>' in shown


def test_the_name_of_a_user_is_escaped(browser: Client, organization: Organization, database_connection: Connection) -> None:
    mallory = make_user(connection=database_connection, email="m@example.test", name="<script>alert(1)</script>")
    add_members(tenant_id=mallory.tenant_id, organization_id=organization.pk, user_ids=[mallory.user_id])
    row = OrganizationMember.objects.of(mallory.tenant_id).get()

    for place in (page(organization, "Members"), reverse("admin:identity_organizationmember_change", args=(row.pk,))):
        assert "<script>alert" not in browser.get(place).content.decode()


# The form of an organization


def branding(**changes: str) -> dict[str, str]:
    colors = {"primary_color": "#0059d6", "page_background_color": "#ffffff"}
    return {"name": "acme", "display_name": "Acme", "logo_url": "https://acme.example/logo.png", **colors, **changes}


def test_the_branding_and_the_metadata_of_an_organization_are_form_fields(browser: Client, organization: Organization) -> None:
    browser.post(page(organization), {**branding(), "metadata-name-0": "plan", "metadata-value-0": "gold"})
    browser.post(
        page(organization), {**branding(logo_url=""), "metadata-name-0": "tier", "metadata-value-0": "silver", "metadata-name-1": ""}
    )

    organization.refresh_from_db()
    assert organization.branding == {"colors": {"primary": "#0059d6", "page_background": "#ffffff"}}
    assert organization.metadata == {"tier": "silver"}


@pytest.mark.parametrize(
    ("sent", "field", "said"),
    [
        ({"logo_url": "http://acme.example/logo.png"}, "logo_url", "Enter an address that starts with https://."),
        ({"primary_color": "blue"}, "primary_color", "Enter # and 3 to 8 hexadecimal digits, such as #0059d6."),
        ({"page_background_color": ""}, "page_background_color", "Enter both colors, or leave both empty."),
        ({"metadata-value-0": "gold"}, "metadata", "Enter a name for the value “gold”."),
        ({"metadata-name-0": "a", "metadata-name-1": "a"}, "metadata", "The name “a” appears twice."),
    ],
)
def test_invalid_branding_or_metadata_is_explained_at_its_field(
    browser: Client, organization: Organization, sent: dict[str, str], field: str, said: str
) -> None:
    answer = browser.post(page(organization), branding(**sent))

    assert answer.context["adminform"].form.errors == {field: [said]}
    organization.refresh_from_db()
    assert organization.branding == {}


def test_a_group_that_is_created_from_the_tab_belongs_to_the_organization(browser: Client, organization: Organization) -> None:
    link = next(panel.add_url for panel in browser.get(page(organization, "Roles and groups")).context["panels"] if "Groups" in panel.title)

    browser.post(link, {"name": "Builders", "type": "organization", "organization": organization.pk})

    assert Group.objects.of(organization.tenant_id).get().organization == organization
    assert "Builders" in browser.get(page(organization, "Roles and groups")).content.decode()
    assert not Role.objects.of(organization.tenant_id).exists()


@pytest.mark.parametrize(("required", "text"), [(True, "Choose"), (False, "Not set")])
def test_the_empty_choice_of_a_row_says_whether_a_choice_is_required(tenant: Tenant, required: bool, text: str) -> None:
    field = RowField(required=required)
    field.offer(Role.objects.of(tenant.pk))
    assert isinstance(field.widget, Select)
    assert list(field.widget.choices) == [("", text)]
