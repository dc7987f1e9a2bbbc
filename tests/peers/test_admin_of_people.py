"""The pages about a user and the pages of the audit log in a real browser, on wide and narrow screens and in both color schemes.

axe finds no fault in the pages, and a member can be added and removed with the keyboard.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.contrib.admin.utils import quote
from pytest_django.plugin import DjangoDbBlocker

from foundation.acting import Act, Actor, acting, said
from identity.models import AuditEntry, Connection, Group, Organization, OrganizationMember, Role, Tenant, User
from identity.services import groups, memberships, roles
from identity.services.users import block_user, update_user
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.actions import make_deployed_action
from tests.factories.admin import PASSWORD, new_staff
from tests.factories.models.authapi import RememberedBrowserFactory
from tests.factories.models.identity import EnrolledFactorFactory, UserFactory
from tests.factories.organizations import make_group, make_organization, make_role
from tests.factories.sign_ins import make_block, make_session
from tests.peers.accessibility import AXE, DESKTOP, PHONE, barriers_of, show_whole
from tests.peers.chromium import PROGRAM, Chromium, Page, chromium

pytestmark = [pytest.mark.peer, pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers")]


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with django_db_blocker.unblock(), web_process("uvicorn") as process:
        yield process


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.fixture
def ada(tenant: Tenant, database_connection: Connection) -> User:
    """Return a user with rows in every section of the page of the user, and with changes by staff."""
    ada = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="ada@example.test", name="Ada Lovelace")
    group, company, role = make_group(tenant, "Mathematicians"), make_organization(tenant, "engines"), make_role(tenant, "Author")
    groups.add_group_members(tenant_id=tenant.pk, group_id=group.pk, user_ids=[ada.user_id])
    memberships.add_members(tenant_id=tenant.pk, organization_id=company.pk, user_ids=[ada.user_id])
    roles.assign_user_roles(tenant_id=tenant.pk, user_id=ada.user_id, role_ids=[role.pk])
    make_session(ada)
    make_block(ada)
    EnrolledFactorFactory.create(user=ada, address="+491712345678", name="Work phone")
    RememberedBrowserFactory.create(tenant_id=tenant.pk, user=ada)
    make_deployed_action(tenant)
    with (
        acting(Act(Actor("staff", "1", "charles@example.test"), ip="192.0.2.7", user_agent="Mozilla/5.0")),
        said("Block", "left the company"),
    ):
        block_user(tenant_id=tenant.pk, user_id=ada.user_id)
        changes = {"nickname": "Countess", "app_metadata": {"plan": "gold", "api_key": "never shown", "seats": [1, 2]}}
        update_user(tenant_id=tenant.pk, user_id=ada.user_id, changes=changes)
    return ada


@pytest.fixture
def visit(web: WebProcess, browser: Chromium, tenant: Tenant) -> Callable[[str], Page]:
    page = browser.page()
    base = f"http://127.0.0.1:{web.address[1]}"
    page.open(f"{base}/admin/login/?next=/admin/")
    page.fill("input[name=username]", new_staff(tenant).email)
    page.fill("input[name=password]", PASSWORD)
    page.click("#login-form button")
    page.until("location.pathname === '/admin/' && document.readyState === 'complete'")

    def opened(path: str) -> Page:
        page.open(base + path)
        return page

    return opened


def test_the_pages_of_a_user_and_the_audit_log_are_accessible_on_every_screen(visit: Callable[[str], Page], ada: User) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make test-peers")
    entry = AuditEntry.objects.filter(tenant_id=ada.tenant_id).latest("pk")
    company, group, role = (model.objects.of(ada.tenant_id).get() for model in (Organization, Group, Role))
    own = f"/admin/identity/user/{quote(ada.pk)}"
    pages = {
        "connection": "/admin/identity/connection/add/?strategy=apple",
        "audit-log": "/admin/identity/auditentry/",
        "audit-entry": f"/admin/identity/auditentry/{entry.pk}/change/",
        "history": f"{own}/history/",
        "user": f"{own}/change/",
        **{f"user-{tab}": f"{own}/change/?tab={tab}" for tab in ("access", "security", "identities", "events-and-deliveries")},
        "organization": f"/admin/identity/organization/{quote(company.pk)}/change/",
        **{
            f"organization-{tab}": f"/admin/identity/organization/{quote(company.pk)}/change/?tab={tab}"
            for tab in ("members", "connections", "roles-and-groups", "invitations")
        },
        "group": f"/admin/identity/group/{quote(group.pk)}/change/?tab=members",
        "role": f"/admin/identity/role/{quote(role.pk)}/change/?tab=users",
        "timeline": f"{own}/timeline/",
        "provision": f"{own}/provision/",
        "second-factors": "/admin/authapi/second-factors/",
        "reset-factors": f"{own}/do/reset-factors/",
    }
    barriers = {}
    for name, path in pages.items():
        page = visit(path)
        keep_pictures(page, name)
        if wrong := barriers_of(page):
            barriers[name] = wrong
    assert barriers == {}, json.dumps(barriers, indent=1)


@pytest.mark.parametrize("width", [1280, 360], ids=["desktop", "phone"])
def test_a_member_can_be_added_and_removed_by_keyboard(visit: Callable[[str], Page], ada: User, width: int) -> None:
    grace = UserFactory.create(tenant_id=ada.tenant_id, connection=ada.connection, email="grace@example.test", name="Grace Hopper")
    company = Organization.objects.of(ada.tenant_id).get()
    members = OrganizationMember.objects.of(ada.tenant_id).filter(user=grace)
    page = visit(f"/admin/identity/organization/{quote(company.pk)}/change/?tab=members")
    page.show_as(width=width)
    page.open(page.evaluate("location.href"))

    enter(page, "nobody@example.test")
    assert "No user has this email address or user id." in page.text()
    page.evaluate("document.querySelector('[name=add-member-user]').select()")
    enter(page, "grace@example.test")
    page.until("location.search === '?tab=members'")
    assert "Grace Hopper" in page.text()
    assert members.exists()

    page.evaluate(
        "[...document.querySelectorAll('tr')].find((row) => row.innerText.includes('Grace')).querySelector('td:last-child a').focus()"
    )
    page.press("Enter")
    page.until("location.pathname.endsWith('/delete/') && document.readyState === 'complete'")
    assert "Membership of Grace Hopper (grace@example.test) in engines" in page.text()
    page.evaluate("document.querySelector('#content input[type=submit]').focus()")
    page.press("Enter")
    page.until("location.search === '?tab=members' && document.readyState === 'complete'")

    assert not members.exists()
    assert "Grace Hopper" not in page.text(".panel")
    assert page.complaints == []


def enter(page: Page, text: str) -> None:
    """Type into the field for a new member, press Enter and wait for the next page."""
    page.evaluate("document.querySelector('[name=add-member-user]').focus()")
    page.send("Input.insertText", text=text)
    page.evaluate("window.isOld = true")
    page.press("Enter")
    page.until("!window.isOld && document.readyState === 'complete'")


def keep_pictures(page: Page, name: str) -> None:
    """Save pictures of the page if the environment variable `PICTURES` names a directory."""
    if place := os.environ.get("PICTURES"):
        for width, scheme in ((DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "dark"), (PHONE, "light")):
            show_whole(page, width, scheme)
            page.picture(Path(place) / f"{name}-{scheme}-{width}.png")
