"""One tenant of a service under test: functions that subscribe to its stream and cause events in its log."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from authapi.models import Client
from authapi.services.clients import create_client
from authapi.tokens.claims import TokenOrder, machine_subject
from authapi.tokens.minting import mint
from events.hints import publish_hint
from events.log.envelope import encode_envelope, event_source
from events.log.numbering import number_tenant
from events.models import Event, Head, Outbox
from foundation.ids import new_event_id
from identity.models import Tenant
from tests.conformance.reader import Subscriber


@dataclass
class Target:
    """A tenant with a global client, reached through one server."""

    tenant: Tenant
    address: tuple[str, int]
    client: Client

    @property
    def host(self) -> str:
        return f"{self.tenant.pk}.example.test"

    def token(self, *, scopes: tuple[str, ...] = ("read:events",), seconds: int = 3600, audience: str | None = None) -> str:
        """Return an access token of the tenant's client."""
        self.client.refresh_from_db()
        order = TokenOrder(
            issuer=f"http://{self.host}/",
            subject=machine_subject(self.client.client_id),
            audience=audience or f"http://{self.host}/api/v2/",
            client_id=self.client.client_id,
            client_version=self.client.auth_version,
            scopes=scopes,
            grant="client-credentials",
            jti=secrets.token_hex(16),
            seconds=seconds,
            dialect="access_token",
        )
        return mint(order, tenant_id=self.tenant.pk)

    def subscribe(self, query: dict[str, Any] | str | None = None, *, token: str | None = None, **options: Any) -> Subscriber:
        """Request a stream, and return the open stream or the refusal.

        `headers` are added to the usual headers; the value None removes a header.
        """
        headers: dict[str, str | None] = {
            "Host": self.host,
            "Authorization": f"Bearer {token or self.token()}",
            "Accept": "text/event-stream",
        }
        headers |= options.pop("headers", {})
        return Subscriber(
            self.address, headers={name: value for name, value in headers.items() if value is not None}, query=query, **options
        )

    def write(self, *types: str, padding: int = 0, announce: bool = True) -> list[str]:
        """Record one event per given type in one transaction, number the events, and send a hint if `announce` is true.

        Return the ids in order.
        """
        rows = [self._event(event_type, padding) for event_type in types]
        with transaction.atomic():
            for row in rows:
                row.save()
                Outbox.objects.create(event=row.pk, tenant_id=self.tenant.pk)
        batch = number_tenant(self.tenant.pk)
        assert batch is not None
        if announce:
            publish_hint(self.tenant.pk, batch.head_position)
        return [row.event_id for row in rows]

    def head(self) -> Head:
        return Head.objects.get(pk=self.tenant.pk)

    def _event(self, event_type: str, padding: int) -> Event:
        now, event_id = datetime.now(UTC), new_event_id()
        body = encode_envelope(
            event_type=event_type,
            source=event_source("svc", self.tenant.pk, self.host),
            event_id=event_id,
            time=now,
            data={"object": {"padding": "x" * padding}},
            tenant_id=self.tenant.pk,
            stream_id=self.head().stream_id,
            max_bytes=settings.EVENT_MAX_BYTES,
        )
        return Event(event_id=event_id, tenant_id=self.tenant.pk, type=event_type, root="user:x", time=now, body=body)


def make_target(tenant: Tenant, address: tuple[str, int]) -> Target:
    """Create a global client of a new tenant. The client may read the events of the tenant."""
    client, _ = create_client(tenant_id=tenant.pk, name=f"subscriber {time.time_ns()}", is_global=True)
    return Target(tenant, address, client)
