"""A request to an old endpoint, and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from authapi import client_auth
from authapi.client_auth import check_origin
from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.failures.requests import RequestCase
from authapi.login.connections import client_connections
from authapi.models import Client
from authapi.token_request import TokenRequest
from identity.models import Connection

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LONGEST_ID = 64
_MOST_PARAMETERS = 20


@dataclass(frozen=True)
class LegacyRequest(TokenRequest):
    """A request with its query string."""

    query: bytes = field(default=b"", repr=False)

    @property
    def user_agent(self) -> str:
        return self.headers.get("user-agent", "")

    @property
    def origin(self) -> str:
        """The origin of the page whose script sent the request; empty if the browser sent no origin."""
        return self.headers.get("origin", "")

    def needed(self, name: str) -> str:
        """Return a parameter. If it is missing, raises `RequestRefused` with an error that old clients expect."""
        value = self.text(name)
        if value is None:
            raise RequestRefused(LegacyCase.MISSING_PARAMETER, parameter=name)
        return value

    def in_query(self, name: str) -> str:
        """Return a parameter of the query, empty if absent. Raises `RequestRefused` for a malformed query."""
        try:
            pairs = parse_qsl(self.query.decode("ascii"), errors="strict", max_num_fields=_MOST_PARAMETERS)
        except ValueError as error:
            raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The query cannot be read.") from error
        return next((value for key, value in pairs if key == name), "")


@dataclass(frozen=True)
class Reply:
    """A successful answer: JSON, or text of another type.

    Scripts of the origin in `reader` may read the answer, and may send cookies with the request.
    """

    members: Mapping[str, Any] | None = field(default=None, repr=False)
    text: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    reader: str = ""


def named_client(request: LegacyRequest) -> Client:
    """Return the client that a request names, without authentication. Raises `RequestRefused`.

    The error is the same for a revoked client, a client of another tenant, and an unknown client.
    """
    client = client_named(request.host.tenant_id, request.needed("client_id"))
    if client is None:
        raise RequestRefused(LegacyCase.UNKNOWN_CLIENT)
    check_origin(client, request.origin or None)
    return client


def client_named(tenant_id: str, client_id: str) -> Client | None:
    """Return the usable client of this id."""
    if not client_id or len(client_id) > _LONGEST_ID:
        return None
    try:
        client = client_auth.clients.get((tenant_id, client_id))
    except Client.DoesNotExist:
        return None
    return client if client.revoked_at is None and client.client_id == client_id else None


def named_connection(request: LegacyRequest, client: Client, name: str) -> Connection:
    """Return the connection of this name if the client may use it. Raises `RequestRefused`."""
    enabled = next((one for one in client_connections(client) if name in (one.name, *one.realms)), None)
    if enabled is not None:
        return enabled
    rows = Connection.objects.of(request.host.tenant_id).filter(deletion_started_at__isnull=True)
    exists = rows.filter(name=name[:128]).exists()
    raise RequestRefused(LegacyCase.CONNECTION_DISABLED if exists else LegacyCase.CONNECTION_NOT_FOUND)
