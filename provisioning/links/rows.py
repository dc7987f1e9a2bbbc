"""Database rows of links. A run reads the links before a write and stores the changed links with its outcome. If several streams write to
one server, the run also locks the account.

The rules are in `provisioning.scim.links`; every operation is one round trip to the database.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any
from uuid import uuid4

from psycopg.types.json import Jsonb

from events.models import Head
from foundation import failpoints
from foundation.database.statements import Prepared, execute, fetch_all, fetch_one, run_script
from provisioning.actions.pace import NoTurn
from provisioning.actions.setups import Setup
from provisioning.runs.outcomes import storable
from provisioning.scim.link_book import LinkBook
from provisioning.scim.links import Link

# Seconds until the delivery runs again if another stream is writing to the user's account.
_BUSY_SECONDS = 0.5
_SHORTEST_SECRET = 16
_COLUMNS = {
    "tenant_id": "text",
    "action_id": "uuid",
    "server": "text",
    "user_id": "text",
    "remote_id": "text",
    "birth": "bigint",
    "ended": "bigint",
    "position": "bigint",
    "user_names": "jsonb",
    "user_name": "text",
    "keys": "jsonb",
    "is_keyed": "boolean",
    "created_there": "text",
    "is_missing": "boolean",
    "doubt": "bigint",
    "origin": "text",
    "is_suspect": "boolean",
}
_NAMES = ", ".join(_COLUMNS)
_RECORD = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
_KEY = ("action_id", "server", "user_id")
_REPLACED = ", ".join(f"{name} = EXCLUDED.{name}" for name in _COLUMNS if name not in (*_KEY, "is_suspect"))
# Decides between concurrent runs: ignores a row that is older than the stored link, and a row that is older than the end of the stored
# link. Exception: if the stored link has no remote id, a row with an older position is stored, because it may contain this id. A link that
# an administrator confirmed during the run stays confirmed.
UPSERT = f"""
INSERT INTO provisioning_accountlink AS l ({_NAMES}, updated_at)
SELECT {_NAMES}, clock_timestamp() FROM jsonb_to_recordset(%(links)s) AS r({_RECORD})
ON CONFLICT ({", ".join(_KEY)}) DO UPDATE SET {_REPLACED}, updated_at = EXCLUDED.updated_at,
    is_suspect = EXCLUDED.is_suspect AND NOT (l.remote_id = EXCLUDED.remote_id AND l.ended IS NULL AND NOT l.is_suspect)
WHERE EXCLUDED.birth >= l.birth AND (l.ended IS NULL OR EXCLUDED.birth > l.ended OR EXCLUDED.ended > l.ended)
    AND (EXCLUDED.position >= l.position OR l.remote_id = '')
"""  # noqa: S608  (constants of this module)
_ROWS = """
SELECT coalesce(jsonb_agg(to_jsonb(l)), '[]') FROM provisioning_accountlink l
WHERE l.server = %(server)s AND (l.user_id = %(user)s OR l.remote_id = ANY(%(remote_ids)s))
"""
_READ = Prepared("provisioning_read_links", _ROWS, {"server": "text", "user": "text", "remote_ids": "text[]"})
# In one round trip, returns the rows as they were before this statement, and stores a doubt for the create request that follows. Does not
# change a link that is newer than the event. Changes an open link only in three cases: the link has no account id, the server has reported
# the account as missing, or the link is a suspect.
_BEGIN = f"""
WITH begun AS (
    INSERT INTO provisioning_accountlink AS l ({_NAMES}, updated_at)
    SELECT {_NAMES}, clock_timestamp() FROM jsonb_to_recordset(%(links)s) AS r({_RECORD})
    ON CONFLICT ({", ".join(_KEY)}) DO UPDATE SET
        remote_id = CASE WHEN l.ended IS NULL THEN l.remote_id ELSE '' END,
        birth = CASE WHEN l.ended IS NULL THEN l.birth ELSE EXCLUDED.birth END,
        user_names = CASE WHEN l.ended IS NULL THEN l.user_names ELSE EXCLUDED.user_names END,
        user_name = CASE WHEN l.ended IS NULL THEN l.user_name ELSE '' END,
        keys = CASE WHEN l.ended IS NULL THEN l.keys ELSE EXCLUDED.keys END,
        is_keyed = l.is_keyed AND l.ended IS NULL,
        is_missing = l.is_missing AND l.ended IS NULL,
        is_suspect = l.is_suspect AND l.ended IS NULL,
        created_there = CASE WHEN l.ended IS NULL THEN l.created_there ELSE '' END,
        origin = CASE WHEN l.ended IS NULL THEN l.origin ELSE EXCLUDED.origin END,
        ended = NULL, doubt = EXCLUDED.doubt, position = greatest(l.position, EXCLUDED.position), updated_at = EXCLUDED.updated_at
    WHERE l.birth <= EXCLUDED.birth AND CASE WHEN l.ended IS NULL THEN l.remote_id = '' OR l.is_missing OR l.is_suspect
        ELSE l.ended < EXCLUDED.birth END
)
{_ROWS}
"""  # noqa: S608
_BEGIN_CREATE = Prepared("provisioning_begin_create", _BEGIN, {"links": "jsonb", **_READ.types})
# Compares seconds, because the same time may be stored in several precisions.
_SHOWS_CREATION = """
SELECT EXISTS (SELECT 1 FROM provisioning_accountlink
    WHERE server = %s AND created_there NOT IN ('', 'unstable') AND left(created_there, 19) <> left(%s, 19))
"""
_HELD = """
SELECT l.remote_id FROM provisioning_accountlink l
WHERE l.server = %(server)s AND l.remote_id = ANY(%(ids)s) AND l.tenant_id <> %(tenant)s AND l.ended IS NULL
"""
_LOCK = """
INSERT INTO provisioning_accountlock AS k (tenant_id, server, user_id, token, until)
VALUES (%(tenant)s, %(server)s, %(user)s, %(token)s, clock_timestamp() + make_interval(secs => %(seconds)s))
ON CONFLICT (tenant_id, server, user_id) DO UPDATE SET token = EXCLUDED.token, until = EXCLUDED.until WHERE k.until <= clock_timestamp()
"""
_UNLOCK = """
DELETE FROM provisioning_accountlock WHERE tenant_id = %(tenant)s AND server = %(server)s AND user_id = %(user)s AND token = %(token)s
"""
_FIELDS = frozenset(field.name for field in fields(Link))


class DatabaseRows:
    """The rows of links for one user on one server."""

    def __init__(self, server: str, user_id: str, holds_secret: Callable[[Link], bool] = lambda link: False) -> None:
        self._server = server
        self._user_id = user_id
        self._holds_secret = holds_secret

    def read(self, remote_ids: Sequence[str]) -> list[Link]:
        """Return the links on this server that contain the id of the user or one of `remote_ids`. The links of all tenants are searched."""
        return _links_of(run_script([_READ], self._values(remote_ids))[0][1])

    def begin(self, link: Link) -> list[Link]:
        """Store a doubt for the create request that is about to be sent; return the links of the user as they were before.

        The commit is asynchronous: a crash of the database may lose the doubt, together with the claim of the delivery.
        """
        values = {**self._values(()), "links": as_jsonb([link.document()])}
        links = _links_of(run_script([_BEGIN_CREATE], values, is_repeatable=True)[0][1])
        failpoints.reach("doubted")
        return links

    def write(self, link: Link) -> bool:
        """Store a link immediately; return False if a newer event has written the link. A link that contains a secret is not stored."""
        return self._holds_secret(link) or write_links([link.document()]) == 1

    def shows_creation(self, other_than: str) -> bool:
        """Tell whether the server has returned a creation time that differs from `other_than`."""
        (is_shown,) = fetch_one(_SHOWS_CREATION, [self._server, other_than]) or (False,)
        return bool(is_shown)

    def _values(self, remote_ids: Sequence[str]) -> dict[str, Any]:
        return {"server": self._server, "user": self._user_id, "remote_ids": list(remote_ids)}


class RunLinks:
    """The account links that one run of an action reads and changes, for the event at `position`.

    On `shared_servers` a run locks the user's account, because other enabled streams of the tenant also write to these servers.
    """

    def __init__(self, setup: Setup, position: int, *, shared_servers: frozenset[str] = frozenset()) -> None:
        self._setup = setup
        self._position = position
        self._shared_servers = shared_servers
        self._books: list[LinkBook] = []
        self._secrets: tuple[str, ...] = ()

    def keep_out(self, secrets: Iterable[str]) -> None:
        """Do not store links whose account id or creation time contains one of these secrets: a server may echo the token that it received.

        Short secrets are ignored, because they occur in ids by chance. Links are never masked, because an id must stay exact.
        """
        self._secrets = tuple(secret for secret in secrets if len(secret) >= _SHORTEST_SECRET)

    def book(self, server: str, user_id: str) -> LinkBook:
        """Return the `LinkBook` of one user on one server."""
        owner = Link(self._setup.tenant_id, str(self._setup.action_id), server, user_id)
        book = LinkBook(DatabaseRows(server, user_id, self._holds_secret), owner, position=self._position)
        self._books.append(book)
        return book

    @property
    def changes(self) -> list[dict[str, Any]]:
        """Return the rows to write with the outcome as JSON, unmasked."""
        return [link.document() for book in self._books for link in book.changes if not self._holds_secret(link)]

    def store(self) -> None:
        """Write the changed links immediately, for runs that settle no delivery."""
        write_links(self.changes)
        self._books.clear()

    def _holds_secret(self, link: Link) -> bool:
        told = (link.remote_id, link.created_there)
        return any(secret in text for secret in self._secrets for text in told)

    @contextmanager
    def lock(self, server: str, user_id: str, *, seconds: float) -> Iterator[None]:
        """Lock the user's account against other streams of the tenant; raise `NoTurn` while another stream has the lock."""
        if server not in self._shared_servers:
            yield
            return
        token = uuid4()
        values = {"tenant": self._setup.tenant_id, "server": server, "user": user_id, "token": token, "seconds": seconds}
        if not execute(_LOCK, values):
            raise NoTurn(_BUSY_SECONDS)
        try:
            yield
        finally:
            execute(_UNLOCK, values)


def write_links(links: Iterable[Mapping[str, Any]]) -> int:
    """Write rows of links with `UPSERT` and return the number of changed rows. Idempotent."""
    documents = list(links)
    return execute(UPSERT, {"links": as_jsonb(documents)}) if documents else 0


def accounts_of_other_tenants(server: str, remote_ids: Iterable[str], *, tenant_id: str) -> set[str]:
    """Return those of the given account ids on a server for which another tenant has a link."""
    return {remote_id for (remote_id,) in fetch_all(_HELD, {"server": server, "ids": list(remote_ids), "tenant": tenant_id})}


def head_position(tenant_id: str) -> int:
    """Return the position of the tenant's newest event. Writes outside of deliveries are stored with this position."""
    return Head.objects.filter(pk=tenant_id).values_list("position", flat=True).first() or 0


def as_jsonb(documents: Iterable[Mapping[str, Any]]) -> Jsonb:
    """Return rows of links as the parameter of `UPSERT`."""
    return Jsonb(storable(list(documents)))


def _links_of(row: tuple[Any, ...] | None) -> list[Link]:
    # Django returns JSON of a plain statement as text.
    (found,) = row or ("[]",)
    return [_link_of(values) for values in json.loads(found)]


def _link_of(values: Mapping[str, Any]) -> Link:
    known = {name: value for name, value in values.items() if name in _FIELDS}
    return Link(**{**known, "user_names": tuple(known["user_names"]), "keys": tuple(known["keys"])})
