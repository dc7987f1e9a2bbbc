"""The demo of `make up`: one tenant with an admin, a global client, three connections, an application, and a stream to a SCIM server.

Idempotent: a second run creates what is missing and resets what has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from django.conf import settings

from authapi.models import Client
from authapi.services.api_resources import ensure_management_api
from authapi.services.clients import create_client, raise_auth_version
from config.demonstration.demo_sign_in import make_sign_in
from events.models import EventStream
from foundation.database.transactions import unit_of_work
from identity.models import Staff, Tenant
from identity.services.connections import create_connection
from identity.services.tenants import create_tenant
from provisioning.actions.secrets import open_secrets
from provisioning.engine.streams import create_stream
from provisioning.models.actions import SCIM_USER_PROVISIONING, Action
from provisioning.services.actions import create_action, deploy_action, update_action

# The metadata of the demo's client. A later run finds the demo by this metadata, and so never treats a customer's tenant as the demo.
_MARK = {"made_by": "make up"}
_ACTION = "SCIM provisioning"
_STREAM = "Users to the SCIM server"
_EVENTS = ["user.created", "user.updated", "user.deleted"]


class ForeignTenants(Exception):
    """The database contains tenants other than the demo; nothing was added."""


@dataclass(frozen=True)
class DemoSecrets:
    """The secrets of the demo. The `repr` omits their values."""

    admin_password: str = field(repr=False)
    client_secret: str = field(repr=False)
    scim_base_url: str = field(repr=False)
    scim_token: str = field(repr=False)
    application_secret: str = field(repr=False)
    user_password: str = field(repr=False)


@dataclass(frozen=True)
class Demo:
    """The accounts and ids of the demo."""

    tenant: str
    admin_user: str
    client_id: str
    stream_id: str
    application_id: str
    user: str


def make_demo(*, tenant_id: str, secrets: DemoSecrets) -> Demo:
    """Create the demo, or the parts that an interrupted run did not create. Raises `ForeignTenants` if the database has other tenants."""
    client = _client(tenant_id)
    if not client.secret_matches(secrets.client_secret):
        client.set_secret(secrets.client_secret)
        client.save(update_fields=["secret_digest", "sealed_secret", "updated"])
        raise_auth_version(client)
    admin = _admin(f"admin@{tenant_id}.example", secrets.admin_password)
    application_id, user = make_sign_in(tenant_id=tenant_id, client_secret=secrets.application_secret, password=secrets.user_password)
    stream = _stream(tenant_id, _action(tenant_id, secrets))
    return Demo(tenant_id, admin.email, client.client_id, stream.pk, application_id, user)


@unit_of_work
def _client(tenant_id: str) -> Client:
    """Return the demo's client. One transaction creates client and tenant, so the metadata of the client identifies both."""
    client = Client.all_tenants.filter(tenant_id=tenant_id, metadata__contains=_MARK).first()
    if client is not None:
        return client
    if Tenant.objects.exists():
        raise ForeignTenants
    create_tenant(tenant_id=tenant_id, name="Demo", host=f"{tenant_id}.localhost")
    ensure_management_api(tenant_id)
    for name, strategy in (("people", settings.DATABASE_STRATEGY), ("email", "email"), ("company", "samlp")):
        create_connection(tenant_id=tenant_id, name=name, strategy=strategy)
    client, _ = create_client(tenant_id=tenant_id, name="Demo client", is_global=True, metadata=_MARK)
    return client


def _admin(email: str, password: str) -> Staff:
    admin = Staff.objects.filter(email=email).first()
    if admin is None:
        return Staff.objects.create_superuser(email, password)
    if not admin.check_password(password):
        admin.set_password(password)
        admin.save(update_fields=["password"])
    return admin


def _action(tenant_id: str, secrets: DemoSecrets) -> Action:
    values = {"SCIM_BASE_URL": secrets.scim_base_url, "SCIM_BEARER_TOKEN": secrets.scim_token}
    action = Action.objects.of(tenant_id).filter(name=_ACTION).first()
    if action is None:
        action = create_action(tenant_id=tenant_id, name=_ACTION, template=SCIM_USER_PROVISIONING, secrets=values)
    elif not values.items() <= open_secrets(action).items():
        # The SCIM server may have another port than at the last start, so store its URL again.
        action = update_action(tenant_id=tenant_id, action_id=action.pk, secrets=values)
    return deploy_action(tenant_id=tenant_id, action_id=action.pk)


def _stream(tenant_id: str, action: Action) -> EventStream:
    stream = EventStream.objects.of(tenant_id).filter(name=_STREAM).first()
    return stream or create_stream(
        tenant_id=tenant_id, name=_STREAM, subscriptions=_EVENTS, destination_type="action", destination={"action_id": str(action.pk)}
    )
