"""Authentication requests to providers: the state that a login needs until the browser returns, sealed in the row of the login.

The provider gets a separate `state` and never the handle of the login, so that a reader of the provider's logs cannot use the login.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import asdict, dataclass, field

import orjson
from django.utils import timezone

from authapi.models import LoginTransaction
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of, new_secret

_STATE = re.compile(r"([0-9]{1,18})\.([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class AuthenticationRequest:
    """One login in progress at a provider: its connection and issuer, and the secrets that tie the answer to this login."""

    connection_id: str
    issuer: str
    callback: str
    state_digest: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


def begin_request(row: LoginTransaction, *, connection_id: str, issuer: str, callback: str) -> tuple[AuthenticationRequest, str]:
    """Store a new request in the row, in place of an earlier request; return the new request and the `state` for the provider."""
    secret = new_secret()
    request = AuthenticationRequest(connection_id, issuer, callback, digest_of(secret), nonce=new_secret(), verifier=new_secret())
    row.sealed_upstream = vault.seal(orjson.dumps(asdict(request)).decode(), place=_place(row))
    row.save(update_fields=["sealed_upstream"])
    return request, f"{row.pk}.{secret}"


def request_for(tenant_id: str, state: str) -> tuple[LoginTransaction, AuthenticationRequest] | None:
    """Return the login of a `state` with its request; None if no login waits for an answer with this `state`."""
    match = _STATE.fullmatch(state)
    if match is None:
        return None
    rows = LoginTransaction.objects.of(tenant_id).select_related("client", "session")
    row = rows.filter(pk=match.group(1), expires_at__gt=timezone.now()).exclude(sealed_upstream="").first()
    if row is None:
        return None
    request = AuthenticationRequest(**orjson.loads(vault.unseal(row.sealed_upstream, place=_place(row))))
    return (row, request) if hmac.compare_digest(request.state_digest, digest_of(match.group(2))) else None


def end_request(row: LoginTransaction) -> bool:
    """Record that an answer to the login's request is accepted. Return False if a concurrent HTTP request has accepted an answer first."""
    rows = LoginTransaction.objects.of(row.tenant_id).filter(pk=row.pk, sealed_upstream=row.sealed_upstream)
    row.sealed_upstream = ""
    return rows.update(sealed_upstream="") == 1


def _place(row: LoginTransaction) -> str:
    # This text is part of the seal, so it must not change: otherwise rows that an older version sealed could not be unsealed.
    # `authorization_request` in the text is the name of the table, not of the model.
    return f"{row.tenant_id}:authorization_request:{row.pk}:upstream"
