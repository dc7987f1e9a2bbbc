"""Invitations in the admin: created, mailed, revoked, and shown on the page of the organization."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client as Browser
from django.urls import reverse
from django.utils import timezone

from authapi.models import Client, Invitation
from identity.models import AuditEntry, Job, Organization, Tenant
from identity.services.organizations import delete_organization
from tests.factories.admin import browser_of, new_staff, new_tenant
from tests.factories.models.authapi import InvitationFactory
from tests.factories.organizations import make_organization, make_role
from tests.factories.sign_in import web_client

LIST, ADD = "admin:authapi_invitation_changelist", "admin:authapi_invitation_add"
ROUTE = "https://app.example.test/login"


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


@pytest.fixture
def client(tenant: Tenant) -> Client:
    return web_client(tenant, settings={"organization_usage": "allow", "initiate_login_uri": ROUTE})[0]


@pytest.fixture
def acme(tenant: Tenant) -> Organization:
    return make_organization(tenant, "acme")


def page_of(row: Invitation) -> str:
    return reverse("admin:authapi_invitation_change", args=(quote(row.pk),))


def act(row: Invitation, name: str) -> str:
    return reverse("admin:authapi_invitation_action", args=(quote(row.pk), name))


def sent(client: Client, acme: Organization, **changes: Any) -> dict[str, Any]:
    good = {
        "organization": acme.pk, "client": client.pk, "connection": "", "email": "grace@example.test", "inviter_name": "Ada",
        "days": 3, "language": "", "is_mailed": "on",
    }  # fmt: skip
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def open_invitation(client: Client, acme: Organization, **columns: Any) -> Invitation:
    row = InvitationFactory.build(tenant_id=acme.tenant_id, organization=acme, client=client, **columns)
    row.renew_ticket()
    row.save(force_insert=True)
    return row


def test_an_invitation_is_created_and_its_link_is_shown_once(browser: Browser, client: Client, acme: Organization) -> None:
    role = make_role(acme.tenant, "editor")
    page = browser.post(reverse(ADD), sent(client, acme, given_roles=[role.pk]))
    row = Invitation.objects.of(acme.tenant_id).get()
    assert (row.roles, row.email, row.inviter_name) == ([role.pk], "grace@example.test", "Ada")
    assert row.expires_at - row.created_at - timedelta(days=3) < timedelta(seconds=5)
    assert "The link is shown only once." in page.content.decode()
    assert row.ticket in page.content.decode()
    assert "no-store" in page["Cache-Control"]
    assert Job.objects.of(acme.tenant_id).filter(type=Job.Type.MESSAGE).count() == 1
    for address in (page_of(row), reverse(LIST)):
        assert row.ticket not in browser.get(address).content.decode()
    noted = list(AuditEntry.objects.filter(tenant_id=acme.tenant_id).values())
    assert "grace@example.test" in str(noted)
    assert row.ticket not in str(noted)


def test_no_mail_is_sent_if_the_checkbox_is_cleared(browser: Browser, client: Client, acme: Organization) -> None:
    page = browser.post(reverse(ADD), sent(client, acme, is_mailed=None))
    assert "No email was sent." in page.content.decode()
    assert not Job.objects.of(acme.tenant_id).exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"email": "none"}, "Enter a valid email address"),
        ({"days": 31}, "less than or equal to 30"),
        ({"days": 0}, "greater than or equal to 1"),
        ({"inviter_name": "Ada\u202e"}, "one line of text"),
        ({"organization": ""}, "This field is required"),
    ],
)
def test_a_refused_form_explains_the_error(browser: Browser, client: Client, acme: Organization, changes: Any, words: str) -> None:
    page = browser.post(reverse(ADD), sent(client, acme, **changes))
    assert words in page.content.decode(), re.findall(r'class="errorlist".*?</ul>', page.content.decode(), re.S)
    assert not Invitation.objects.of(acme.tenant_id).exists()


def test_the_form_refuses_an_application_without_logins_for_organizations(browser: Browser, tenant: Tenant, acme: Organization) -> None:
    closed, _ = web_client(tenant)
    page = browser.post(reverse(ADD), sent(closed, acme))
    assert page.status_code == 200
    assert "organization_usage" in page.content.decode()
    assert not Invitation.objects.of(tenant.pk).exists()


def test_the_list_shows_and_filters_the_state_of_each_invitation(browser: Browser, client: Client, acme: Organization) -> None:
    now = timezone.now()
    columns: dict[str, dict[str, Any]] = {
        "pending": {},
        "accepted": {"accepted_at": now},
        "expired": {"expires_at": now - timedelta(days=1)},
        "revoked": {"revoked_at": now},
    }
    for state, values in columns.items():
        open_invitation(client, acme, email=f"{state}@example.test", **values)
    page = browser.get(reverse(LIST)).content.decode()
    for state in columns:
        assert re.search(r'<td[^>]*class="field-state"[^>]*><span class="badge', page)
        assert state.capitalize() in page
        found = browser.get(reverse(LIST), {"state": state}).content.decode()
        assert re.findall(r"(\w+)@example\.test", found.partition("result_list")[2]) == [state]
    shown = browser.get(reverse("admin:identity_organization_change", args=(acme.pk,)), {"tab": "invitations"}).content.decode()
    assert "Invite a user" in shown
    assert "pending@example.test" in shown


def test_an_invitation_is_revoked_after_a_confirmation(browser: Browser, client: Client, acme: Organization) -> None:
    row = open_invitation(client, acme)
    asked = browser.get(act(row, "revoke"))
    assert "This cannot be undone" in asked.content.decode()
    row.refresh_from_db()
    assert row.revoked_at is None
    browser.post(act(row, "revoke"))
    row.refresh_from_db()
    assert (row.revoked_at is not None, row.ticket) == (True, "")
    # Staff cannot mail or renew an ended invitation.
    assert [browser.post(act(row, name)).status_code for name in ("revoke", "resend", "new-link")] == [403] * 3


def test_a_mail_can_be_sent_again_but_not_immediately(browser: Browser, client: Client, acme: Organization) -> None:
    row = open_invitation(client, acme)
    assert browser.post(act(row, "resend")).status_code == 302
    refused = browser.post(act(row, "resend")).content.decode()
    assert "less than a minute ago" in refused
    assert Job.objects.of(acme.tenant_id).count() == 1


def test_a_new_link_is_shown_once_and_invalidates_the_old_link(browser: Browser, client: Client, acme: Organization) -> None:
    row = open_invitation(client, acme)
    before = row.ticket
    page = browser.post(act(row, "new-link")).content.decode()
    row.refresh_from_db()
    assert row.ticket != before
    assert row.ticket in page


def test_an_auditor_and_staff_of_another_tenant_cannot_invite_or_revoke(client: Client, acme: Organization) -> None:
    row = open_invitation(client, acme)
    auditor, stranger = browser_of(new_staff(acme.tenant, role="auditor")), browser_of(new_staff(new_tenant()))
    assert auditor.get(page_of(row)).status_code == 200
    assert auditor.post(reverse(ADD), sent(client, acme)).status_code == 403
    assert [auditor.post(act(row, name)).status_code for name in ("revoke", "resend", "new-link")] == [403] * 3
    assert [stranger.post(act(row, name)).status_code for name in ("revoke", "resend", "new-link")] == [404] * 3
    assert row.email not in stranger.get(reverse(LIST)).content.decode()
    # The form accepts only rows of the staff member's own tenant, so this form is shown again with errors.
    assert stranger.post(reverse(ADD), sent(client, acme)).status_code == 200
    assert Invitation.objects.of(acme.tenant_id).count() == 1
    assert Invitation.all_tenants.filter(client=client).count() == 1


# The tab of the organization


def tab_of(organization: Organization) -> str:
    return f"{reverse('admin:identity_organization_change', args=(quote(organization.pk),))}?tab=invitations"


def invite_at(organization: Organization) -> str:
    return reverse("admin:identity_organization_action", args=(quote(organization.pk), "invite"))


def typed(client: Client, **changes: Any) -> dict[str, Any]:
    good = {"email": "grace@example.test", "client_id": client.client_id, "role": ""}
    return {f"invite-{name}": value for name, value in {**good, **changes}.items()}


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"email": "none"}, "email", "Enter a valid email address"),
        ({"email": ""}, "email", "This field is required"),
        ({"client_id": "unknown"}, "client_id", "No object has this name or id"),
        ({"role": "unknown"}, "role", "No object has this name or id"),
    ],
)
def test_a_refused_invitation_is_explained_at_the_field_of_the_tab(
    browser: Browser, client: Client, acme: Organization, changes: dict[str, str], field: str, words: str
) -> None:
    answer = browser.post(invite_at(acme), typed(client, **changes))

    assert [tab.label for tab in answer.context["tabs"] if tab.is_current] == ["Invitations"]
    assert words in str(answer.context["panels"][0].form.form.errors[field])
    assert not Invitation.objects.of(acme.tenant_id).exists()


def test_the_tab_offers_only_usable_applications_and_refuses_other_rows(
    browser: Browser, tenant: Tenant, client: Client, acme: Organization
) -> None:
    other = new_tenant()
    foreign, _ = web_client(other, settings={"organization_usage": "allow", "initiate_login_uri": ROUTE})
    closed, _ = web_client(tenant)
    elsewhere = make_role(tenant, "Elsewhere", type="organization", organization_id=make_organization(tenant, "other").pk)

    shown = browser.get(tab_of(acme)).content.decode()
    assert f'value="{client.client_id}"' in shown
    assert f'value="{closed.client_id}"' not in shown
    for changes in (
        {"client_id": foreign.client_id},
        {"client_id": closed.client_id},
        {"role": elsewhere.pk},
        {"role": make_role(other).pk},
    ):
        assert browser.post(invite_at(acme), typed(client, **changes)).status_code == 200, changes
    assert browser.post(invite_at(make_organization(other, "foreign")), typed(client)).status_code == 404
    assert not Invitation.all_tenants.filter(tenant_id__in=[tenant.pk, other.pk]).exists()


def test_an_application_without_a_login_route_is_refused_at_its_field(browser: Browser, tenant: Tenant, acme: Organization) -> None:
    without_route, _ = web_client(tenant, settings={"organization_usage": "allow"})

    answer = browser.post(invite_at(acme), typed(without_route))

    assert "login route is required" in str(answer.context["panels"][0].form.form.errors["client_id"])
    assert not Invitation.objects.of(tenant.pk).exists()


def test_an_invitation_of_a_deleted_organization_is_refused(browser: Browser, client: Client, acme: Organization) -> None:
    place = invite_at(acme)
    delete_organization(tenant_id=acme.tenant_id, organization_id=acme.pk)

    assert browser.post(place, typed(client)).status_code == 404
    assert not Invitation.objects.of(client.tenant_id).exists()


def test_an_auditor_sees_the_invitations_on_the_tab_but_cannot_change_them(client: Client, acme: Organization) -> None:
    row = open_invitation(client, acme)
    auditor = browser_of(new_staff(acme.tenant, role="auditor"))

    answer = auditor.get(tab_of(acme))

    assert row.email in answer.content.decode()
    assert answer.context["panels"][0].form is None
    assert act(row, "revoke") not in answer.content.decode()
    assert auditor.post(invite_at(acme), typed(client)).status_code == 403


def test_an_address_is_invited_on_the_tab(browser: Browser, client: Client, acme: Organization) -> None:
    role = make_role(acme.tenant, "editor")

    answer = browser.post(invite_at(acme), typed(client, role=role.pk))

    assert answer.headers["location"] == tab_of(acme)
    row = Invitation.objects.of(acme.tenant_id).get()
    assert (row.roles, row.email, row.client) == ([role.pk], "grace@example.test", client)
    assert Job.objects.of(acme.tenant_id).filter(type=Job.Type.MESSAGE).count() == 1
    shown = browser.get(tab_of(acme)).content.decode()
    assert "Invitation sent to grace@example.test." in shown
    assert row.ticket not in shown


def test_the_tab_links_to_the_page_that_can_show_the_invitation_link(browser: Browser, client: Client, acme: Organization) -> None:
    answer = browser.post(invite_at(acme), typed(client, is_mailed=""))

    row = Invitation.objects.of(acme.tenant_id).get()
    assert answer.status_code == 302
    assert Job.objects.of(acme.tenant_id).filter(type=Job.Type.MESSAGE).count() == 1
    shown = browser.get(tab_of(acme)).content.decode()
    assert row.ticket not in shown
    assert f'href="{reverse(ADD)}?organization={acme.pk}"' in shown


def test_the_tab_has_the_buttons_of_open_invitations_and_each_button_returns_to_the_tab(
    browser: Browser, client: Client, acme: Organization
) -> None:
    row, ended = open_invitation(client, acme), open_invitation(client, acme, revoked_at=timezone.now())
    shown = browser.get(tab_of(acme)).content.decode()

    assert act(ended, "revoke") not in shown
    (address,) = re.findall(rf'href="({re.escape(act(row, "revoke"))}[^"]*)"', shown)
    answer = browser.post(unescape(address))

    assert answer.headers["location"] == tab_of(acme)
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert act(row, "revoke") not in browser.get(tab_of(acme)).content.decode()
