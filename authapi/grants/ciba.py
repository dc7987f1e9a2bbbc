"""`urn:openid:params:grant-type:ciba`: a client polls until its user has answered, and gets its tokens once (CIBA 10.1, 11)."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from authapi.failures import RequestRefused
from authapi.failures.ciba import CibaCase
from authapi.grants.approved_elsewhere import granted_elsewhere
from authapi.grants.user_grant import Granted, UserGrant, sender_of
from authapi.models import CibaRequest, Client
from authapi.services.sign_in_log import note
from authapi.token_request import TokenRequest
from authapi.tokens.bindings import KEY
from authapi.tokens.ciba_requests import locked_request, why_waiting
from authapi.tokens.revocation import revoke_lineage
from foundation.database.transactions import unit_of_work

GRANT = "urn:openid:params:grant-type:ciba"
_EXCHANGED, _FAILED_EXCHANGE = "ciba_exchange_succeeded", "ciba_exchange_failed"
_REPLAYED = "An auth_req_id was used again: everything issued for it was revoked."


@dataclass(frozen=True)
class _Waiting:
    """The reason why the client gets no tokens.

    This reason is returned, not raised, because the transaction that records the poll must commit.
    """

    case: CibaCase
    interval: int = 0


class CibaGrant(UserGrant):
    """Answers a client while the row of its request is locked. A second exchange of an id revokes the tokens of the first exchange."""

    name = GRANT
    takes_details = True

    def granted(self, request: TokenRequest, client: Client) -> Granted:
        outcome = _exchanged(request, client, request.required("auth_req_id"))
        if isinstance(outcome, Granted):
            return outcome
        headers = {"Retry-After": str(outcome.interval)} if outcome.interval else {}
        raise RequestRefused(outcome.case, headers=headers, interval=outcome.interval)


@unit_of_work
def _exchanged(request: TokenRequest, client: Client, auth_req_id: str) -> Granted | _Waiting:
    """Return the tokens to issue for the id, or the reason why the client gets none. Raises `RequestRefused`; the id then stays valid."""
    row = locked_request(request.host.tenant_id, auth_req_id)
    if row is None or client.is_public or row.application_id != client.pk:
        return _Waiting(CibaCase.INVALID_ID)
    if row.confirmation and row.confirmation.get(KEY) != request.key:
        # The id is bound to a key, so a stolen id is worthless without this key. A poll without the key is not recorded. Otherwise polls of
        # an attacker would count as polls of the client, and the client would get `slow_down`.
        return _Waiting(CibaCase.WRONG_DPOP_KEY)
    if row.used_at is not None:
        _punish(row, request, client)
        return _Waiting(CibaCase.INVALID_ID)
    waiting = why_waiting(row, now=timezone.now())
    if waiting is not None:
        return _Waiting(waiting, row.interval if waiting is CibaCase.SLOW_DOWN else 0)
    return _granted(row, request, client)


def _granted(row: CibaRequest, request: TokenRequest, client: Client) -> Granted:
    granted = granted_elsewhere(row, row.user, request, client)
    _note(_EXCHANGED, row, request, client, details={"allowed_at": row.approved_ip or ""})
    return granted


def _punish(row: CibaRequest, request: TokenRequest, client: Client) -> None:
    """Revoke everything issued for an id that was used again, and write a line to the sign-in log."""
    revoke_lineage(tenant_id=row.tenant_id, lineage=row.lineage)
    _note(_FAILED_EXCHANGE, row, request, client, description=_REPLAYED)


def _note(
    code: str, row: CibaRequest, request: TokenRequest, client: Client, *, description: str = "", details: dict[str, str] | None = None
) -> None:
    sender = sender_of(request)
    note(
        tenant_id=row.tenant_id,
        type=code,
        is_success=code == _EXCHANGED,
        description=description,
        user=row.user,
        client=client,
        connection=row.user.connection.name,
        ip=sender.ip,
        user_agent=sender.user_agent,
        details=details,
    )
