"""The tenants of the measurements of the stream, with clients, tokens and users whose changes cause events."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
from django.conf import settings
from django.db import transaction

from authapi.models import Client, SigningKey
from authapi.services.clients import create_client
from authapi.tokens.claims import TokenOrder, machine_subject
from authapi.tokens.key_pairs import KeyPair, new_key_pair
from authapi.tokens.minting import mint
from benchmarks.stream.subjects import marked, renumbered
from events.log.cursor import Cursor, CursorSealer
from events.log.envelope import event_message
from events.log.numbering import number_tenant, open_connection
from events.log.reading import LoggedEvent
from events.models import Event, Head, LogEntry
from events.stream.frames import encode_frames
from foundation.ids import new_event_id
from identity.models import Connection, Tenant, User
from identity.services import connections, tenants, users

_SCOPES = ("read:events", "read:users", "update:users")
_TOKEN_SECONDS = 7200
# The limit of open streams. No measurement reaches it, because the limit itself is not measured.
_CONNECTIONS_PER_TENANT = 100_000
# The number of tenants with a user. Other tenants have no user: creating users for a thousand tenants would take longer than the
# measurement.
_WRITERS = 125
_COPY = "COPY events_event (event_id, tenant_id, type, root, time, body) FROM STDIN (FORMAT binary)"
_COLUMN_TYPES = ("varchar", "varchar", "varchar", "varchar", "timestamptz", "bytea")


@dataclass(frozen=True)
class Member:
    """A tenant with a client that may subscribe. A tenant that writes also has a user, whose changes cause events."""

    tenant_id: str
    client: Client
    user: User | None

    @property
    def host(self) -> str:
        return f"{self.tenant_id}.example.test"

    def token(self) -> str:
        """Return a fresh access token of the tenant's client."""
        order = TokenOrder(
            issuer=f"http://{self.host}/",
            subject=machine_subject(self.client.client_id),
            audience=f"http://{self.host}/api/v2/",
            client_id=self.client.client_id,
            client_version=self.client.auth_version,
            scopes=_SCOPES,
            grant="client-credentials",
            jti=secrets.token_hex(16),
            seconds=_TOKEN_SECONDS,
            dialect="access_token",
        )
        return mint(order, tenant_id=self.tenant_id)

    def subscription(self, token: str, query: str = "") -> bytes:
        """Return the request that opens a stream."""
        lines = (f"GET /api/v2/events{query} HTTP/1.1", f"Host: {self.host}", f"Authorization: Bearer {token}", "Accept: text/event-stream")
        return "\r\n".join([*lines, "", ""]).encode()

    def write(self, number: int, count: int = 1) -> float:
        """Change the user `count` times in one transaction; return the time of the commit. Each event contains its number."""
        assert self.user is not None
        committed: list[float] = []
        with transaction.atomic():
            transaction.on_commit(lambda: committed.append(time.monotonic()))
            for mark in range(number, number + count):
                users.update_user(tenant_id=self.tenant_id, user_id=self.user.user_id, changes={"nickname": marked(mark)})
        return committed[0]


class World:
    """The tenants created so far.

    All tenants sign with one key pair, because creating a key pair for each tenant would take longer than the measurements.
    """

    def __init__(self) -> None:
        self._run = secrets.token_hex(4)
        self._pair = new_key_pair(subject="bench", now=datetime.now(UTC))
        self._members: list[Member] = []

    def members(self, count: int) -> list[Member]:
        """Return the first `count` tenants, and create those that do not exist."""
        while (made := len(self._members)) < count:
            self._members.append(_made(f"b{self._run}-{made}", self._pair, with_user=made < _WRITERS))
        return self._members[:count]

    def managed_user(self, member: Member) -> str:
        """Return the id of another user of the tenant, for a management client to change."""
        connection = Connection.objects.of(member.tenant_id).get(name="people")
        email = f"bob-{secrets.token_hex(4)}@example.test"
        return users.create_user(tenant_id=member.tenant_id, connection=connection, email=email).user_id

    def template(self) -> bytes:
        """Return the JSON message that a subscriber gets for a change of the user."""
        body = _newest(self._first())[1].body
        return event_message("user.updated", self.sealer(self._first()).seal(Cursor(1, 1)), bytes(body))

    def frame(self) -> bytes:
        """Return the frame of a change of the user, as the service sends it."""
        tenant_id = self._first().tenant_id
        entry, event = _newest(self._first())
        logged = LoggedEvent(entry.position, entry.recorded_at, event.type, bytes(event.body))
        return encode_frames([logged], epoch=1, sealer=CursorSealer(settings.CURSOR_KEYS, tenant_id=tenant_id))[0].data

    @staticmethod
    def sealer(member: Member) -> CursorSealer:
        return CursorSealer(settings.CURSOR_KEYS, tenant_id=member.tenant_id)

    def start_of(self, member: Member) -> str:
        """Return the cursor directly before the first event of a tenant's log."""
        head = Head.objects.get(pk=member.tenant_id)
        return self.sealer(member).seal(Cursor(head.epoch, head.floor))

    def history(self, count: int) -> Member:
        """Create a tenant without a user, and add `count` copies of the first tenant's newest event to its log; return the tenant."""
        newest = _newest(self._first())[1]
        member = _made(f"b{self._run}-history-{secrets.token_hex(2)}", self._pair, with_user=False)
        body, now = bytes(newest.body), datetime.now(UTC)
        with open_connection() as database, database.transaction():
            with database.cursor() as cursor, cursor.copy(_COPY) as copy:
                copy.set_types(_COLUMN_TYPES)
                for number in range(count):
                    event_id = new_event_id()
                    copied = renumbered(body, number).replace(newest.event_id.encode(), event_id.encode())
                    copy.write_row((event_id, member.tenant_id, newest.type, newest.root, now, copied))
            database.execute(
                "INSERT INTO events_outbox (event, tenant_id) SELECT id, tenant_id FROM events_event WHERE tenant_id = %s",
                [member.tenant_id],
            )
        # Without statistics of the new rows, the numbering of these rows can exceed the statement timeout.
        _settle()
        number_tenant(member.tenant_id)
        _settle()
        return member

    def _first(self) -> Member:
        return self.members(1)[0]


def _made(tenant_id: str, pair: KeyPair, *, with_user: bool) -> Member:
    tenants.create_tenant(tenant_id=tenant_id, name=tenant_id, host=f"{tenant_id}.example.test")
    Tenant.objects.filter(pk=tenant_id).update(max_event_connections=_CONNECTIONS_PER_TENANT)
    key = SigningKey(tenant_id=tenant_id, kid=pair.kid, public_jwk=pair.public_jwk, state=SigningKey.State.CURRENT)
    key.set_private_key(pair.private_pem)
    key.save()
    client, _ = create_client(tenant_id=tenant_id, name="subscriber", is_global=True)
    if not with_user:
        return Member(tenant_id, client, None)
    people = connections.create_connection(tenant_id=tenant_id, name="people", strategy=settings.DATABASE_STRATEGY)
    profile: dict[str, Any] = {"given_name": "Ada", "family_name": "Lovelace", "app_metadata": {"plan": "x" * 300}}
    user = users.create_user(tenant_id=tenant_id, connection=people, email="ada@example.test", **profile)
    users.update_user(tenant_id=tenant_id, user_id=user.user_id, changes={"nickname": marked(0)})
    number_tenant(tenant_id)
    return Member(tenant_id, client, user)


def _newest(member: Member) -> tuple[LogEntry, Event]:
    entry = LogEntry.objects.filter(tenant_id=member.tenant_id, event__type="user.updated").select_related("event").latest("position")
    return entry, entry.event


def _settle() -> None:
    """Let the database do its pending maintenance now, so that none happens during a measurement."""
    with open_connection() as database:
        for table in ("events_event", "events_logentry", "events_outbox", "events_head"):
            database.execute(psycopg.sql.SQL("VACUUM ANALYZE {}").format(psycopg.sql.Identifier(table)))
        database.execute("CHECKPOINT")
