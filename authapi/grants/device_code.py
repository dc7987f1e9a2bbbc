"""`urn:ietf:params:oauth:grant-type:device_code`: a device polls until a user has answered, and gets its tokens once (RFC 8628, 3.4)."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from authapi.failures import RequestRefused
from authapi.failures.device import DeviceCase
from authapi.grants.approved_elsewhere import granted_elsewhere
from authapi.grants.user_grant import Granted, UserGrant, sender_of
from authapi.models import Client, DeviceGrant
from authapi.services.sign_in_log import note
from authapi.token_request import TokenRequest
from authapi.tokens.bindings import KEY
from authapi.tokens.device_codes import locked_device, why_waiting
from authapi.tokens.revocation import revoke_lineage
from foundation.database.transactions import unit_of_work
from identity.models import User

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_EXCHANGED, _FAILED_EXCHANGE = "sede", "fede"
_REPLAYED = "A device code was used again: everything issued for it was revoked."


@dataclass(frozen=True)
class _Waiting:
    """The reason why the device gets no tokens.

    This reason is returned, not raised, because the transaction that stores the poll must commit.
    """

    case: DeviceCase
    interval: int = 0
    # Whether the device has sent an unused code of this client. If the code is bound to a key, the request must also contain a proof of
    # this key.
    is_proof: bool = True


class DeviceCodeGrant(UserGrant):
    """Answers a device under the lock of its row. A second exchange of a code revokes the tokens of the first exchange."""

    name = GRANT
    takes_details = True

    def granted(self, request: TokenRequest, client: Client) -> Granted:
        outcome = _exchanged(request, client, request.required("device_code"))
        if isinstance(outcome, Granted):
            return outcome
        if outcome.is_proof and request.charge is not None:
            # A poll of a waiting device is not charged to its IP address as a failure, because many devices may share one IP address.
            request.charge.settle()
        headers = {"Retry-After": str(outcome.interval)} if outcome.interval else {}
        raise RequestRefused(outcome.case, headers=headers, interval=outcome.interval)


@unit_of_work
def _exchanged(request: TokenRequest, client: Client, device_code: str) -> Granted | _Waiting:
    """Return the tokens to issue for the code, or the reason why the device gets none.

    Raises `RequestRefused`; the code then stays valid.
    """
    row = locked_device(request.host.tenant_id, device_code)
    if row is None or row.application_id != client.pk:
        return _Waiting(DeviceCase.INVALID_CODE, is_proof=False)
    if row.confirmation and row.confirmation.get(KEY) != request.key:
        # A stolen code is worthless without the key. A poll without the key is not stored. Otherwise polls of an attacker would count as
        # polls of the device, and the device would get `slow_down`.
        return _Waiting(DeviceCase.WRONG_DPOP_KEY, is_proof=False)
    if row.used_at is not None:
        _punish(row, request, client)
        return _Waiting(DeviceCase.INVALID_CODE, is_proof=False)
    waiting = why_waiting(row, now=timezone.now())
    if waiting is not None or row.user is None:
        waiting = waiting or DeviceCase.INVALID_CODE
        return _Waiting(waiting, row.interval if waiting is DeviceCase.SLOW_DOWN else 0)
    return _granted(row, row.user, request, client)


def _granted(row: DeviceGrant, user: User, request: TokenRequest, client: Client) -> Granted:
    granted = granted_elsewhere(row, user, request, client)
    _note(_EXCHANGED, row, request, client, is_success=True, details={"allowed_at": row.approved_ip or ""})
    return granted


def _punish(row: DeviceGrant, request: TokenRequest, client: Client) -> None:
    """Revoke everything issued for a code that was used again, and write a line to the sign-in log."""
    revoke_lineage(tenant_id=row.tenant_id, lineage=row.lineage)
    _note(_FAILED_EXCHANGE, row, request, client, is_success=False, description=_REPLAYED)


def _note(
    code: str,
    row: DeviceGrant,
    request: TokenRequest,
    client: Client,
    *,
    is_success: bool,
    description: str = "",
    details: dict[str, str] | None = None,
) -> None:
    sender = sender_of(request)
    note(
        tenant_id=row.tenant_id,
        type=code,
        is_success=is_success,
        description=description,
        user=row.user,
        client=client,
        connection=row.user.connection.name if row.user is not None else "",
        ip=sender.ip,
        user_agent=sender.user_agent,
        details=details,
    )
