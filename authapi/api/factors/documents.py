"""Documents of second factors, passkeys and passwords in the management interface, without secrets."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from foundation.timestamps import wire_time
from identity.factors.user_factors import user_handle
from identity.models import EnrolledFactor, PasswordCredential, User

Kind = EnrolledFactor.Kind
PASSWORD = "password"  # noqa: S105  (a type of authentication method)
# Number of digits that stay readable in a masked phone number.
_READABLE = 4


def wire_id(factor: EnrolledFactor) -> str:
    """Return the id of a factor in the list of authentication methods: type and device."""
    return f"{factor.kind}|{factor.device}"


def password_id(user: User) -> str:
    """Return the id of a user's password in the list of authentication methods. The id is stable: it does not depend on the password."""
    digest = hashlib.sha256(f"{user.tenant_id}:{user.user_id}".encode()).hexdigest()
    return f"{PASSWORD}|pwd_{digest[:16]}"


def shown_number(number: str, *, is_masked: bool) -> str:
    """Return a phone number. With `is_masked`, only the last digits are readable."""
    return "X" * (len(number) - _READABLE) + number[-_READABLE:] if is_masked and len(number) > _READABLE else number


def method(factor: EnrolledFactor, *, masks_numbers: bool = True) -> dict[str, Any]:
    """Return a factor or a passkey as an authentication method. Expects its user to be loaded."""
    moments = {"enrolled_at": factor.created_at if factor.is_confirmed else None, "last_auth_at": factor.last_used_at}
    return {
        "id": wire_id(factor),
        "type": factor.kind,
        "confirmed": factor.is_confirmed,
        **({"name": factor.name} if factor.name else {}),
        **_of_kind(factor, masks_numbers=masks_numbers),
        "created_at": wire_time(factor.created_at),
        **{name: wire_time(moment) for name, moment in moments.items() if moment is not None},
    }


def password_method(user: User, credential: PasswordCredential) -> dict[str, Any]:
    """Return the password of a user as an authentication method."""
    return {
        "id": password_id(user),
        "type": PASSWORD,
        "confirmed": True,
        "identity_user_id": user.identifier,
        "created_at": wire_time(user.created_at),
        "last_password_reset": wire_time(credential.changed_at),
    }


def guardian_enrollment(factor: EnrolledFactor, *, masks_numbers: bool = True) -> dict[str, Any]:
    """Return a factor with its device id, as `/guardian/enrollments/{id}` shows it."""
    address = shown_number(factor.address, is_masked=masks_numbers) if factor.kind == Kind.PHONE else factor.address
    moments = {"enrolled_at": factor.created_at if factor.is_confirmed else None, "last_auth": factor.last_used_at}
    return {
        "id": factor.device,
        "status": "confirmed" if factor.is_confirmed else "pending",
        "type": factor.kind,
        **({"name": factor.name} if factor.name else {}),
        **({"identifier": address} if address else {}),
        **({"phone_number": address} if factor.kind == Kind.PHONE else {}),
        **{name: wire_time(moment) for name, moment in moments.items() if moment is not None},
    }


def _of_kind(factor: EnrolledFactor, *, masks_numbers: bool) -> dict[str, Any]:
    if factor.kind == Kind.PHONE:
        methods = [{"type": "sms", "id": f"sms|{factor.device}"}]
        number = shown_number(factor.address, is_masked=masks_numbers)
        return {"phone_number": number, "preferred_authentication_method": "sms", "authentication_methods": methods}
    if factor.kind == Kind.EMAIL:
        return {"email": factor.address}
    return _of_key(factor) if factor.is_key else {}


def _of_key(factor: EnrolledFactor) -> dict[str, Any]:
    key = {
        "key_id": factor.credential_id,
        "public_key": base64.b64encode(bytes(factor.public_key or b"")).decode(),
        "relying_party_identifier": factor.relying_party,
    }
    if factor.kind != Kind.PASSKEY:
        return key
    return {
        **key,
        "credential_device_type": "multi_device" if factor.is_backed_up else "single_device",
        "credential_backed_up": factor.is_backed_up,
        "identity_user_id": factor.user.identifier,
        "user_handle": base64.urlsafe_b64encode(user_handle(factor.user)).decode().rstrip("="),
        "transports": factor.transports,
        **({"aaguid": factor.aaguid} if factor.aaguid else {}),
    }
