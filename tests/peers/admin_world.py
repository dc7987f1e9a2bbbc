"""A tenant for tests of the admin: users, an application, and a stream to a real SCIM server. The server has refused one of the users."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.test import override_settings
from django.utils import timezone

from authapi.models import Client
from authapi.services.clients import create_client
from events.log.numbering import number_tenant
from events.models import EventStream
from identity.models import Connection, Organization, Staff, Tenant, User
from identity.services import connections, memberships, roles, users
from provisioning.engine import delivering, dispatch, lanes
from provisioning.engine.streams import create_stream
from provisioning.models import DeadLetter
from provisioning.services.actions import create_action, deploy_action
from tests.factories.models.identity import StaffFactory
from tests.factories.organizations import make_organization, make_role
from tests.factories.scim import RealServer, running_scim_server
from tests.factories.sign_ins import make_session, make_sign_in

_STAFF = "ada@example.test"
_NAMES = (
    "Ada Lovelace",
    "Grace Hopper",
    "Edsger Dijkstra",
    "Barbara Liskov",
    "Alan Turing",
    "Radia Perlman",
    "Donald Knuth",
    "Frances Allen",
)


@dataclass(frozen=True)
class AdminWorld:
    tenant: Tenant
    people: Connection
    ada: User
    company: Organization
    shop: Client
    stream: EventStream
    letter: DeadLetter


@contextmanager
def admin_world(tenant: Tenant) -> Iterator[AdminWorld]:
    """Create the objects of the tenant. The SCIM server runs until the end of the block, so that a redelivery can succeed."""
    with running_scim_server() as server, override_settings(DELIVERY_RETRY_DELAYS=[]):
        yield _created(tenant, server)


def _created(tenant: Tenant, server: RealServer) -> AdminWorld:
    here: dict[str, Any] = {"tenant_id": tenant.pk}
    people = connections.create_connection(**here, name="people", strategy="database")
    partners = connections.create_connection(**here, name="partners", strategy="database")
    shop, _ = create_client(
        **here, name="Shop", grant_types=["authorization_code", "refresh_token"], redirect_uris="https://shop.example.test/callback"
    )
    connections.update_connection(**here, connection_id=people.pk, changes={"enabled_clients": [shop.client_id]})
    stream = _stream(tenant, server)
    ada, *others = [_user(people, name) for name in _NAMES]
    company, role = make_organization(tenant, "engines", display_name="Analytical Engines"), make_role(tenant, "Author")
    memberships.add_members(**here, organization_id=company.pk, user_ids=[ada.user_id])
    roles.assign_user_roles(**here, user_id=ada.user_id, role_ids=[role.pk])
    make_session(ada, shop)
    for number, user in enumerate([ada, *others]):
        success = {"type": "s", "is_success": True, "description": "Logged in."} if number else {}
        make_sign_in(user, shop, created_at=timezone.now() - timedelta(hours=3 * number, minutes=5), **success)
    # The server refuses a second account with the same user name, so the event of the second Ada becomes a dead letter.
    _user(partners, _NAMES[0])
    number_tenant(tenant.pk)
    dispatch.dispatch_tenant(tenant.pk)
    deliver_all(stream)
    letter = DeadLetter.objects.get(tenant_id=tenant.pk)
    return AdminWorld(tenant, people, ada, company, shop, stream, letter)


def staff_of_pictures(tenant: Tenant) -> Staff:
    """Create a staff account whose email address is the same in every run, because pictures show it.

    An account of an earlier test with this address gets another address.
    """
    Staff.objects.filter(email=_STAFF).update(email=f"former-{secrets.token_hex(4)}@example.test")
    return StaffFactory.create(tenant_id=tenant.pk, email=_STAFF)


def _user(connection: Connection, name: str) -> User:
    given, family = name.split()
    address = f"{given.lower()}@example.test"
    names = {"name": name, "given_name": given, "family_name": family}
    return users.create_user(tenant_id=connection.tenant_id, connection=connection, email=address, **names)


def _stream(tenant: Tenant, server: RealServer) -> EventStream:
    secrets = {"SCIM_BASE_URL": server.base_url, "SCIM_BEARER_TOKEN": server.token}
    action = create_action(tenant_id=tenant.pk, name="Directory", template="scim-user-provisioning", secrets=secrets)
    deploy_action(tenant_id=tenant.pk, action_id=action.pk)
    kinds, destination = ["user.created", "user.updated", "user.deleted"], {"action_id": str(action.pk)}
    return create_stream(
        tenant_id=tenant.pk, name="Users to the directory", subscriptions=kinds, destination_type="action", destination=destination
    )


def deliver_all(stream: EventStream) -> None:
    """Make all due deliveries of the stream, as a worker does."""
    claim = lanes.claim_oldest(stream.pk)
    while claim is not None:
        claim = delivering.deliver_claim(claim, delivering.Turn()).next or lanes.claim_oldest(stream.pk)
