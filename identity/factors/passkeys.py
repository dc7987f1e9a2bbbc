"""Passkeys of staff: the ceremonies of WebAuthn at the platform's own host."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from django.conf import settings

from identity.factors import ceremonies
from identity.factors.ceremonies import (
    ANSWER_MOST_CHARACTERS,
    CHALLENGE_BYTES,
    Account,
    CeremonyRefused,
    Credential,
    RelyingParty,
    credential_in,
)
from identity.factors.staff_factors import NewPasskey
from identity.hosts import scheme, split_authority
from identity.models import Staff, StaffFactor

__all__ = [
    "ANSWER_MOST_CHARACTERS",
    "CHALLENGE_BYTES",
    "PasskeyRefused",
    "credential_in",
    "enrolment_options",
    "origin_of",
    "use_options",
    "user_handle",
    "verified_enrolment",
    "verified_use",
]

PasskeyRefused = CeremonyRefused


def origin_of(authority: str) -> str:
    """Return the one origin whose pages may use passkeys: the platform's host, with the port of the request.

    The Host header was checked before.
    """
    _, port = split_authority(authority)
    return f"{scheme()}://{settings.PLATFORM_HOST}{f':{port}' if port else ''}"


def user_handle(staff: Staff) -> bytes:
    """Return the handle of the account: the same for all its passkeys, and without personal data (WebAuthn, 14.6.1)."""
    return hashlib.sha256(f"staff:{staff.pk}:{staff.created_at.isoformat()}".encode()).digest()


def enrolment_options(staff: Staff, challenge: bytes) -> dict[str, Any]:
    """Return the options for the creation of a passkey. Passkeys that the account already has are excluded."""
    account = Account(user_handle(staff), staff.email)
    existing = _credentials(staff.factors.filter(kind=StaffFactor.Kind.PASSKEY))
    return ceremonies.registration_options(_party(), account, challenge, existing=existing)


def use_options(challenge: bytes, factors: Iterable[StaffFactor] = ()) -> dict[str, Any]:
    """Return the options for a signature with one of these passkeys. If none is given, the browser may use any passkey for this host."""
    return ceremonies.use_options(_party(), challenge, allowed=_credentials(factors))


def verified_enrolment(answer: str, *, challenge: bytes, origin: str) -> NewPasskey:
    """Verify a registration and return the passkey. Raises `PasskeyRefused`."""
    made = ceremonies.verified_registration(answer, _party(origin), challenge=challenge)
    return NewPasskey(made.id, made.public_key, made.sign_count, made.transports)


def verified_use(answer: str, factor: StaffFactor, *, challenge: bytes, origin: str) -> int:
    """Verify a use of exactly this passkey by its user and return the sign count. Raises `PasskeyRefused`, also if the count did not
    increase."""
    use = ceremonies.verified_use(
        answer,
        _party(origin),
        challenge=challenge,
        public_key=bytes(factor.public_key or b""),
        sign_count=factor.sign_count,
        handle=user_handle(factor.staff),
    )
    return use.sign_count


def _party(origin: str = "") -> RelyingParty:
    return RelyingParty(settings.PLATFORM_HOST, f"Identity ({settings.PLATFORM_HOST})", origin)


def _credentials(factors: Iterable[StaffFactor]) -> list[Credential]:
    return [Credential(factor.credential_id or "", tuple(factor.transports)) for factor in factors]
