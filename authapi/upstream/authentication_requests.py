"""What a login elsewhere needs to remember until the browser comes back, sealed in the row of the waiting request.

The provider gets a `state` of its own and never the handle of the request: whoever reads the provider's logs can do nothing here.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import asdict, dataclass, field

import orjson
from django.utils import timezone

from authapi.models import AuthorizationRequest
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of, new_secret

_STATE = re.compile(r"([0-9]{1,18})\.([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class Waiting:
    """One login that is under way: through which connection, at which issuer, and the secrets that tie the answer to it."""

    connection_id: str
    issuer: str
    callback: str
    state_digest: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


def begin_waiting(row: AuthorizationRequest, *, connection_id: str, issuer: str, callback: str) -> tuple[Waiting, str]:
    """Remember a new login in the row, in place of an earlier one; return it with the `state` for the provider."""
    secret = new_secret()
    waiting = Waiting(connection_id, issuer, callback, digest_of(secret), nonce=new_secret(), verifier=new_secret())
    row.sealed_upstream = vault.seal(orjson.dumps(asdict(waiting)).decode(), place=_place(row))
    row.save(update_fields=["sealed_upstream"])
    return waiting, f"{row.pk}.{secret}"


def waiting_for(tenant_id: str, state: str) -> tuple[AuthorizationRequest, Waiting] | None:
    """Return the request that a `state` belongs to, if it still waits for this very answer."""
    match = _STATE.fullmatch(state)
    if match is None:
        return None
    rows = AuthorizationRequest.objects.of(tenant_id).select_related("client", "session")
    row = rows.filter(pk=match.group(1), expires_at__gt=timezone.now()).exclude(sealed_upstream="").first()
    if row is None:
        return None
    waiting = Waiting(**orjson.loads(vault.unseal(row.sealed_upstream, place=_place(row))))
    return (row, waiting) if hmac.compare_digest(waiting.state_digest, digest_of(match.group(2))) else None


def end_waiting(row: AuthorizationRequest) -> bool:
    """Take the answer, once: return False when another request took it first."""
    rows = AuthorizationRequest.objects.of(row.tenant_id).filter(pk=row.pk, sealed_upstream=row.sealed_upstream)
    row.sealed_upstream = ""
    return rows.update(sealed_upstream="") == 1


def _place(row: AuthorizationRequest) -> str:
    return f"{row.tenant_id}:authorization_request:{row.pk}:upstream"
