"""The page of a user: related rows, the timeline of events, and a run that provisions the user on demand."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from authapi.models import LoginFailures, RefreshToken, Session
from authapi.services.clients import create_client
from events.log.numbering import number_tenant
from events.models import Event, EventStream
from identity.models import AuditEntry, Connection, Tenant, User
from identity.services import groups, memberships, roles, users
from identity.services.users import update_user
from provisioning.engine import dispatch
from provisioning.engine.streams import create_stream
from provisioning.models import Action, Delivery, Trial
from tests.factories.admin import browser_of, new_staff
from tests.factories.models.identity import UserFactory
from tests.factories.organizations import make_group, make_organization, make_role
from tests.factories.scim import RealServer
from tests.factories.sign_ins import make_block, make_refresh_token, make_session
from tests.provisioning.trials.test_user_run import deployed


@pytest.fixture
def ada(tenant: Tenant, database_connection: Connection) -> User:
    return UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="ada@example.test", given_name="Ada")


@pytest.fixture
def stream(action: Action) -> EventStream:
    bound = {"action_id": str(action.pk)}
    types = ["user.created", "user.updated"]
    return create_stream(tenant_id=action.tenant_id, name="To SCIM", subscriptions=types, destination_type="action", destination=bound)


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


def place(user: User, page: str, *more: str) -> str:
    return reverse(f"admin:identity_user_{page}", args=(quote(user.pk), *more))


def shown(browser: Client, user: User, page: str = "change", **query: Any) -> str:
    answer = browser.get(place(user, page), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_page_shows_organizations_groups_and_roles_with_their_source(browser: Client, tenant: Tenant, ada: User) -> None:
    inside, outside, direct = make_group(tenant, "inside"), make_group(tenant, "outside"), make_role(tenant, "direct")
    groups.add_group_members(tenant_id=tenant.pk, group_id=inside.pk, user_ids=[ada.user_id])
    through, company = make_role(tenant, "through"), make_organization(tenant, "company")
    groups.assign_group_roles(tenant_id=tenant.pk, group_id=inside.pk, role_ids=[through.pk])
    roles.assign_user_roles(tenant_id=tenant.pk, user_id=ada.user_id, role_ids=[direct.pk])
    memberships.add_members(tenant_id=tenant.pk, organization_id=company.pk, user_ids=[ada.user_id])

    page = browser.get(f"{place(ada, 'change')}?tab=access").content.decode()

    for row in (inside, direct, through, company):
        assert f'/{row._meta.model_name}/{quote(row.pk)}/change/"' in page, row
    assert quote(outside.pk) not in page
    assert re.search(r">\s*The user\s*<", page)
    assert re.search(r">\s*A group of the user\s*<", page)


def test_the_page_unlinks_a_linked_identity_after_a_confirmation(browser: Client, tenant: Tenant, ada: User) -> None:
    other = UserFactory.create(tenant_id=tenant.pk, connection=ada.connection, email="other@example.test")
    users.link_users(tenant_id=tenant.pk, primary_id=ada.user_id, secondary_id=other.user_id)
    linked = ada.linked_identities.get()
    unlink = reverse("admin:identity_linkedidentity_action", args=(quote(linked.pk), "unlink"))

    assert unlink in browser.get(f"{place(ada, 'change')}?tab=identities").content.decode()
    assert "becomes a separate user again" in browser.get(unlink).content.decode()
    assert browser.post(unlink).status_code == 302

    assert not ada.linked_identities.exists()
    assert User.objects.of(tenant.pk).filter(user_id=other.user_id).exists()


@pytest.mark.parametrize("keeps", [True, False], ids=["keeping refresh tokens", "with refresh tokens"])
def test_a_button_ends_all_sessions_of_a_user(browser: Client, ada: User, keeps: bool) -> None:
    for _ in range(2):
        make_session(ada)
    shop, _ = create_client(tenant_id=ada.tenant_id, name="Shop")
    token = make_refresh_token(ada, shop)
    assert place(ada, "action", "log-out") in shown(browser, ada)

    assert browser.post(place(ada, "action", "log-out"), {"keeps_refresh_tokens": "on"} if keeps else {}).status_code == 302

    assert not Session.objects.of(ada.tenant_id).exists()
    assert RefreshToken.objects.of(ada.tenant_id).filter(pk=token.pk, revoked=None).exists() is keeps
    assert AuditEntry.objects.filter(act="Log out everywhere", object_id=str(ada.pk)).count() == 1


def test_a_button_lifts_all_blocks_of_a_user(browser: Client, ada: User) -> None:
    for ip in ("192.0.2.1", "192.0.2.2"):
        make_block(ada, ip=ip)

    assert place(ada, "action", "lift-blocks") in shown(browser, ada)
    assert browser.post(place(ada, "action", "lift-blocks")).status_code == 302

    assert not LoginFailures.objects.of(ada.tenant_id).exists()
    assert place(ada, "action", "lift-blocks") not in shown(browser, ada)


def test_an_auditor_sees_the_sections_without_buttons(tenant: Tenant, ada: User) -> None:
    make_session(ada)
    page = browser_of(new_staff(tenant, role="auditor")).get(f"{place(ada, 'change')}?tab=security").content.decode()

    assert "<h2>Sessions</h2>" in page
    assert "/do/" not in page
    assert place(ada, "provision") not in page
    assert browser_of(new_staff(tenant, role="auditor")).get(place(ada, "provision")).status_code == 403


def test_the_timeline_shows_and_links_each_event_with_its_deliveries(browser: Client, stream: EventStream, ada: User) -> None:
    update_user(tenant_id=ada.tenant_id, user_id=ada.user_id, changes={"nickname": "Countess"})
    number_tenant(ada.tenant_id)
    dispatch.dispatch_stream(stream.pk)
    created, updated = Event.objects.filter(tenant_id=ada.tenant_id, root=f"user:{ada.user_id}").order_by("pk")

    page = shown(browser, ada, "timeline")

    assert page.index("user.<wbr>updated") < page.index("user.<wbr>created")
    for event in (created, updated):
        assert reverse("admin:events_logentry_change", args=(event.pk,)) in page
        delivery = Delivery.objects.get(event_id=event.event_id)
        assert reverse("admin:provisioning_delivery_change", args=(delivery.pk,)) in page
    assert "To SCIM" in page


def test_the_timeline_can_be_paged_to_its_end_and_back(browser: Client, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("provisioning.admin.user_pages.PAGE_ROWS", 2)
    for number in range(4):
        update_user(tenant_id=ada.tenant_id, user_id=ada.user_id, changes={"nickname": str(number)})
    keys = list(Event.objects.filter(tenant_id=ada.tenant_id, root=f"user:{ada.user_id}").order_by("-pk").values_list("pk", flat=True))

    seen: list[list[int]] = []
    query: dict[str, str] = {}
    while True:
        context = browser.get(place(ada, "timeline"), query).context
        seen.append([one.event.pk for one in context["happened"]])
        if not context["older_url"]:
            break
        query = {"before": context["older_url"].partition("=")[2]}
    back = browser.get(place(ada, "timeline") + context["newer_url"]).context

    assert seen == [keys[:2], keys[2:4], keys[4:]]
    assert [one.event.pk for one in back["happened"]] == keys[2:4]
    assert [one.event.pk for one in browser.get(place(ada, "timeline"), {"before": "x"}).context["happened"]] == keys[:2]


def test_a_user_is_provisioned_on_demand_and_every_step_is_shown(browser: Client, action: Action, ada: User, server: RealServer) -> None:
    assert deployed(action).version == 1
    asked = browser.get(place(ada, "provision")).content.decode()
    assert str(action) in asked

    dry = browser.post(place(ada, "provision"), {"action": str(action.pk)}).content.decode()
    assert server.user(ada.user_id) is None
    answer = browser.post(place(ada, "provision"), {"action": str(action.pk), "write": "on"})

    for page in (dry, answer.content.decode()):
        assert page.count('<th scope="row">') >= 6
    written = server.user(ada.user_id)
    assert written is not None
    assert written["userName"] == "ada@example.test"
    assert list(Trial.objects.filter(action=action).order_by("started_at").values_list("kind", flat=True)) == ["dry_run", "user_run"]
    noted = AuditEntry.objects.filter(object_type="identity.user", object_id=str(ada.pk)).order_by("pk")
    assert [entry.act for entry in noted] == ["Dry run for a user", "Provisioned now"]


def test_the_page_shows_the_next_step_if_no_action_is_deployed(browser: Client, ada: User) -> None:
    assert "No action for a SCIM server is deployed" in shown(browser, ada, "provision")
