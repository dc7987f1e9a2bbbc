"""Authorization requests that clients push (RFC 9126): stored encrypted for a short time, found by a handle, deleted when answered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta

import orjson
from django.utils import timezone

from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.models import Client, PushedRequest
from authapi.protocols.oauth.parameters import Parameters, kept
from foundation.database.statements import Prepared, run_script
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of, new_secret

# RFC 9126, 2.2. A handle of 256 random bits follows.
PREFIX = "urn:ietf:params:oauth:request_uri:"
DEFAULT_SECONDS = 30
_LONGEST_URI = 200
_INSERT = Prepared(
    "authapi_push_request",
    "INSERT INTO authapi_pushedrequest (tenant_id, client_id, digest, sealed_parameters, created_at, expires_at)"
    " VALUES (%(tenant)s, %(client)s, %(digest)s, %(sealed)s, %(now)s, %(expires)s)",
    {"tenant": "varchar", "client": "bigint", "digest": "varchar", "sealed": "text", "now": "timestamptz", "expires": "timestamptz"},
)


@dataclass(frozen=True)
class Pushed:
    """The answer to a client that pushed a request: the `request_uri`, and the seconds within which a login with this URI must begin."""

    request_uri: str = field(repr=False)
    seconds: int


def push(client: Client, parameters: Parameters) -> Pushed:
    """Store the checked parameters of a request for its client.

    The commit does not wait for the disk. If the database crashes and loses the request, the client pushes it again.
    """
    handle, now = new_secret(), timezone.now()
    seconds = client.settings.get("par_request_expiry") or DEFAULT_SECONDS
    digest = digest_of(handle)
    sealed = vault.seal(orjson.dumps(parameters.state).decode(), place=_place(client.tenant_id, digest))
    row = {
        "tenant": client.tenant_id,
        "client": client.pk,
        "digest": digest,
        "sealed": sealed,
        "now": now,
        "expires": now + timedelta(seconds=seconds),
    }
    run_script((_INSERT,), row, is_repeatable=True)
    return Pushed(PREFIX + handle, seconds)


def is_pushed(request_uri: str) -> bool:
    """Tell whether a `request_uri` has the form of pushed requests.

    Any other `request_uri` is an external URL, which is never fetched.
    """
    return request_uri.startswith(PREFIX)


def found(client: Client, request_uri: str) -> Parameters:
    """Return the parameters of a pushed request of this client, if the request is still valid. Raises `RequestRefused`.

    The error is the same for an unknown, expired or used request, and for a request of another client or tenant. The request is not used
    up, because a reload or a link scanner must not end the user's login.
    """
    if len(request_uri) > _LONGEST_URI:
        raise RequestRefused(OAuthCase.INVALID_REQUEST_URI)
    digest = digest_of(request_uri.removeprefix(PREFIX))
    rows = PushedRequest.objects.of(client.tenant_id).filter(digest=digest, client=client, expires_at__gt=timezone.now())
    sealed = rows.values_list("sealed_parameters", flat=True).first()
    if sealed is None:
        raise RequestRefused(OAuthCase.INVALID_REQUEST_URI)
    state = orjson.loads(vault.unseal(sealed, place=_place(client.tenant_id, digest)))
    return replace(kept(state), pushed=digest)


def use_up(*, tenant_id: str, digest: str) -> bool:
    """Delete a pushed request. Return False if another answer has already deleted it.

    If two answers run concurrently, one waits for the other and gets False.
    """
    deleted, _ = PushedRequest.objects.of(tenant_id).filter(digest=digest).delete()
    return bool(deleted)


def _place(tenant_id: str, digest: str) -> str:
    return f"{tenant_id}:pushed_request:{digest}:parameters"
