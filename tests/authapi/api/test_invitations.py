"""Invitations to organizations in the management interface."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from authapi.models import AdministrativeLine, Client, Invitation
from identity.models import AuditEntry, Connection, Job, Organization, Tenant
from identity.services.organizations import delete_organization
from tests.factories.admin import new_tenant
from tests.factories.organizations import make_organization, make_role
from tests.factories.sign_in import web_client
from tests.management import Management

ROUTE = "https://app.example.test/login"
FOREIGN = {"organization_usage": "allow", "initiate_login_uri": ROUTE}


@pytest.fixture
def client(tenant: Tenant) -> Client:
    return web_client(tenant, settings=FOREIGN)[0]


@pytest.fixture
def acme(tenant: Tenant) -> Organization:
    return make_organization(tenant, "acme")


def body_of(client: Client, **changes: Any) -> dict[str, Any]:
    good = {"inviter": {"name": "Ada"}, "invitee": {"email": "Grace@example.test"}, "client_id": client.client_id}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def path_of(organization: Organization, *parts: str) -> str:
    return "/".join(("organizations", organization.pk, "invitations", *parts))


def test_an_invitation_is_created_read_listed_and_revoked(api: Management, client: Client, acme: Organization) -> None:
    role = make_role(acme.tenant)
    extras = {"roles": [role.pk], "user_metadata": {"plan": "gold"}, "app_metadata": {"seat": 1}, "ttl_sec": 60}
    made = api.post(path_of(acme), body_of(client, **extras))
    assert made.status == 201, made.json
    found = made.json
    assert found["id"].startswith("uinv_")
    assert len(found["id"]) == 21
    assert found["invitation_url"] == f"{ROUTE}?invitation={found['ticket_id']}&organization={acme.pk}&organization_name=acme"
    assert {
        name: found[name] for name in ("organization_id", "inviter", "invitee", "client_id", "roles", "user_metadata", "app_metadata")
    } == {
        "organization_id": acme.pk,
        "inviter": {"name": "Ada"},
        "invitee": {"email": "grace@example.test"},
        "client_id": client.client_id,
        **{name: extras[name] for name in ("roles", "user_metadata", "app_metadata")},
    }
    assert "connection_id" not in found
    life = datetime.fromisoformat(found["expires_at"]) - datetime.fromisoformat(found["created_at"])
    assert abs(life.total_seconds() - 60) < 5
    assert api.get(path_of(acme, found["id"])).json == found
    assert api.get(path_of(acme, found["id"]), {"fields": "id,invitee"}).json == {"id": found["id"], "invitee": found["invitee"]}
    assert api.get(path_of(acme)).json == [found]
    assert api.delete(path_of(acme, found["id"])).status == 204
    for gone in (api.delete(path_of(acme, found["id"])), api.get(path_of(acme, found["id"]))):
        assert (gone.status, gone.json["errorCode"]) == (404, "inexistent_invitation")
    assert api.get(path_of(acme)).json == []


def test_the_list_has_pages_and_shows_the_newest_first_unless_requested_otherwise(
    api: Management, client: Client, acme: Organization
) -> None:
    made = [
        api.post(path_of(acme), body_of(client, invitee={"email": f"g{at}@example.test"}, send_invitation_email=False)).json["id"]
        for at in range(3)
    ]
    assert [each["id"] for each in api.get(path_of(acme)).json] == made[::-1]
    assert [each["id"] for each in api.get(path_of(acme), {"sort": "created_at:1"}).json] == made
    page = api.get(path_of(acme), {"page": 1, "per_page": 2, "include_totals": "true"}).json
    assert (page["start"], page["limit"], page["total"], [each["id"] for each in page["invitations"]]) == (2, 2, 3, [made[0]])
    assert api.get(path_of(acme), {"sort": "email:1"}).status == 400
    first = api.get(path_of(acme), {"take": 2}).json
    assert [each["id"] for each in api.get(path_of(acme), {"take": 2, "from": first["next"]}).json["invitations"]] == [made[0]]


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"inviter": None}, 400, "invalid_body"),
        ({"inviter": {"name": ""}}, 400, "invalid_body"),
        ({"inviter": {"name": "Ada\nBcc: evil"}}, 400, "invalid_body"),
        ({"inviter": {"name": "Ada\u202e"}}, 400, "invalid_body"),
        ({"inviter": {"name": "x" * 301}}, 400, "invalid_body"),
        ({"invitee": {"email": "no address"}}, 400, "invalid_body"),
        ({"invitee": None}, 400, "invalid_body"),
        ({"client_id": None}, 400, "invalid_body"),
        ({"client_id": "x" * 32}, 404, "inexistent_client"),
        ({"ttl_sec": -1}, 400, "invalid_body"),
        ({"ttl_sec": 2_592_001}, 400, "invalid_body"),
        ({"ttl_sec": True}, 400, "invalid_body"),
        ({"roles": ["rol_0123456789abcdef"]}, 404, None),
        ({"roles": "rol_0123456789abcdef"}, 400, "invalid_body"),
        ({"connection_id": "con_0123456789abcdef"}, 404, None),
        ({"app_metadata": {"blocked": True}}, 400, "invalid_body"),
        ({"more": 1}, 400, "invalid_body"),
    ],
)
def test_an_invalid_invitation_is_refused_and_creates_nothing(
    api: Management, client: Client, acme: Organization, changes: dict[str, Any], status: int, code: str | None
) -> None:
    answer = api.post(path_of(acme), body_of(client, **changes))
    assert (answer.status, answer.json.get("errorCode")) == (status, code), answer.json
    assert not Invitation.objects.of(acme.tenant_id).exists()
    assert not Job.objects.of(acme.tenant_id).exists()


def test_the_validity_of_an_invitation_has_bounds_and_a_default_of_one_week(api: Management, client: Client, acme: Organization) -> None:
    for sent, seconds in ((None, 604_800), (0, 604_800), (1, 1), (2_592_000, 2_592_000)):
        made = api.post(path_of(acme), body_of(client, ttl_sec=sent, send_invitation_email=False))
        life = datetime.fromisoformat(made.json["expires_at"]) - datetime.fromisoformat(made.json["created_at"])
        assert abs(life.total_seconds() - seconds) < 5


def test_an_invitation_requires_an_application_with_organizations_and_a_login_route(
    api: Management, tenant: Tenant, acme: Organization
) -> None:
    closed, _ = web_client(tenant, settings={"initiate_login_uri": ROUTE})
    lost, _ = web_client(tenant, settings={"organization_usage": "require"})
    odd, _ = web_client(tenant, settings={"organization_usage": "require", "initiate_login_uri": "myapp://login"})
    for client, words in ((closed, "organization_usage"), (lost, "default login route"), (odd, "default login route")):
        answer = api.post(path_of(acme), body_of(client))
        assert (answer.status, words in answer.json["message"]) == (400, True)


def test_the_connection_must_be_enabled_for_the_organization(
    api: Management, client: Client, acme: Organization, database_connection: Connection
) -> None:
    answer = api.post(path_of(acme), body_of(client, connection_id=database_connection.pk))
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")


def test_one_email_address_has_at_most_ten_open_invitations(api: Management, client: Client, acme: Organization) -> None:
    answers = [api.post(path_of(acme), body_of(client)) for _ in range(11)]
    assert [answer.status for answer in answers] == [201] * 10 + [409]
    assert api.delete(path_of(acme, answers[0].json["id"])).status == 204
    assert api.post(path_of(acme), body_of(client)).status == 201


def test_an_invitation_that_is_mailed_again_gets_a_new_ticket_only_after_expiry(
    api: Management, client: Client, acme: Organization
) -> None:
    made = api.post(path_of(acme), body_of(client)).json
    path = path_of(acme, made["id"], "resend")
    assert api.post(path).status == 409
    now = datetime.now(UTC)
    with time_machine.travel(now + timedelta(minutes=2), tick=False):
        assert api.post(path).json["ticket_id"] == made["ticket_id"]
    assert Job.objects.of(acme.tenant_id).filter(type=Job.Type.MESSAGE).count() == 2
    Invitation.objects.of(acme.tenant_id).update(expires_at=now - timedelta(days=1), mailed_at=now - timedelta(days=1))
    renewed = api.post(path).json
    assert renewed["ticket_id"] != made["ticket_id"]
    assert datetime.fromisoformat(renewed["expires_at"]) > now
    Invitation.objects.of(acme.tenant_id).update(mailed_at=now - timedelta(days=1), mail_count=10)
    assert api.post(path).status == 409
    api.delete(path_of(acme, made["id"]))
    assert api.post(path).json["errorCode"] == "inexistent_invitation"


def test_no_mail_is_sent_if_the_request_disables_the_mail(api: Management, client: Client, acme: Organization) -> None:
    assert api.post(path_of(acme), body_of(client, send_invitation_email=False)).status == 201
    assert not Job.objects.of(acme.tenant_id).exists()


def test_each_operation_requires_its_scope(tenant: Tenant, client: Client, acme: Organization) -> None:
    path = path_of(acme, "uinv_0123456789abcdef")
    reader, maker = (Management(tenant, scope=f"{verb}:organization_invitations") for verb in ("read", "create"))
    assert [reader.get(path_of(acme)).status, reader.get(path).status] == [200, 404]
    assert [reader.post(path_of(acme), body_of(client)).status, reader.delete(path).status, reader.post(f"{path}/resend").status] == [
        403
    ] * 3
    assert [maker.get(path_of(acme)).status, maker.delete(path).status, maker.post(f"{path}/resend").status] == [403, 403, 404]


def test_invitations_of_another_organization_or_tenant_are_not_found(api: Management, client: Client, acme: Organization) -> None:
    made = api.post(path_of(acme), body_of(client)).json["id"]
    other = make_organization(acme.tenant, "other")
    foreign = new_tenant()
    thief, target = Management(foreign), make_organization(foreign, "target")
    for caller, path in ((api, path_of(other, made)), (thief, path_of(acme, made)), (thief, path_of(target, made))):
        assert [caller.get(path).status, caller.delete(path).status, caller.post(f"{path}/resend").status] == [404] * 3
    assert thief.get(path_of(acme)).status == 404
    assert thief.post(path_of(target), body_of(client)).json["errorCode"] == "inexistent_client"
    assert Invitation.objects.of(acme.tenant_id).filter(revoked_at__isnull=True).count() == 1


def test_tickets_are_not_logged_and_not_stored_in_any_column(api: Management, client: Client, acme: Organization) -> None:
    made = api.post(path_of(acme), body_of(client)).json
    api.get(path_of(acme))
    api.delete(path_of(acme, made["id"]))
    tenant_id = acme.tenant_id
    found = [model.objects.of(tenant_id) for model in (Invitation, Job, AdministrativeLine)]
    for rows in (*found, AuditEntry.objects.filter(tenant_id=tenant_id)):
        assert rows.exists(), rows.model
        assert made["ticket_id"] not in str(list(rows.values())), rows.model


def test_invitations_are_deleted_with_their_client_and_organization(
    api: Management, tenant: Tenant, client: Client, acme: Organization
) -> None:
    other = web_client(tenant, settings=FOREIGN)[0]
    for each in (client, other):
        assert api.post(path_of(acme), body_of(each)).status == 201
    assert api.delete(f"clients/{other.client_id}").status == 204
    assert Invitation.objects.of(tenant.pk).count() == 1
    delete_organization(tenant_id=tenant.pk, organization_id=acme.pk)
    assert Invitation.objects.of(tenant.pk).count() == 0
