"""Passkeys of staff (WebAuthn level 3): what a browser is asked for, and what its answer proves. Rows are the services' business."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import webauthn
from django.conf import settings
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url
from webauthn.helpers.cose import COSEAlgorithmIdentifier
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from identity.factors.staff_factors import NewPasskey
from identity.hosts import scheme, split_authority
from identity.models import Staff, StaffFactor

ANSWER_MOST_CHARACTERS = 20_000
CHALLENGE_BYTES = 32
_ALGORITHMS = [COSEAlgorithmIdentifier.EDDSA, COSEAlgorithmIdentifier.ECDSA_SHA_256, COSEAlgorithmIdentifier.RSASSA_PKCS1_v1_5_SHA_256]
_TRANSPORTS = frozenset(transport.value for transport in AuthenticatorTransport)
# What the library lets through when a browser, or whoever plays one, sends nonsense.
_NONSENSE = (WebAuthnException, ValueError, TypeError, KeyError, AttributeError, IndexError)


class PasskeyRefused(Exception):
    """The passkey was not accepted."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def origin_of(authority: str) -> str:
    """Return the one origin whose pages may use passkeys: the platform's host, on the port of the request, whose Host was checked."""
    _, port = split_authority(authority)
    return f"{scheme()}://{settings.PLATFORM_HOST}{f':{port}' if port else ''}"


def user_handle(staff: Staff) -> bytes:
    """Return the account's name among passkeys: the same for all of them, and nothing about the person (WebAuthn, 14.6.1)."""
    return hashlib.sha256(f"staff:{staff.pk}:{staff.created_at.isoformat()}".encode()).digest()


def enrolment_options(staff: Staff, challenge: bytes) -> dict[str, Any]:
    """Return what the browser is asked to make: a discoverable passkey that verifies its user, none that the account has already."""
    options = webauthn.generate_registration_options(
        rp_id=settings.PLATFORM_HOST,
        rp_name=f"Identity ({settings.PLATFORM_HOST})",
        user_name=staff.email,
        user_id=user_handle(staff),
        challenge=challenge,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
        ),
        exclude_credentials=_descriptors(staff.factors.filter(kind=StaffFactor.Kind.PASSKEY)),
        supported_pub_key_algs=_ALGORITHMS,
    )
    return _as_document(options)


def use_options(challenge: bytes, factors: Iterable[StaffFactor] = ()) -> dict[str, Any]:
    """Return what the browser is asked to sign, with one of these passkeys, or with any that it holds for this host."""
    options = webauthn.generate_authentication_options(
        rp_id=settings.PLATFORM_HOST,
        challenge=challenge,
        allow_credentials=_descriptors(factors),
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return _as_document(options)


def verified_enrolment(answer: str, *, challenge: bytes, origin: str) -> NewPasskey:
    """Return the passkey that a browser says was made. Raises `PasskeyRefused`."""
    document = _parsed(answer)
    try:
        found = webauthn.verify_registration_response(
            credential=document,
            expected_challenge=challenge,
            expected_rp_id=settings.PLATFORM_HOST,
            expected_origin=origin,
            require_user_verification=True,
            supported_pub_key_algs=_ALGORITHMS,
        )
        told = document["response"].get("transports") or []
        transports = tuple(name for name in told if name in _TRANSPORTS)
    except _NONSENSE as error:
        raise PasskeyRefused from error
    return NewPasskey(bytes_to_base64url(found.credential_id), found.credential_public_key, found.sign_count, transports)


def credential_in(answer: str) -> str:
    """Return the id of the passkey that an answer says it comes from. Raises `PasskeyRefused`; nothing is verified yet."""
    named = _parsed(answer).get("id")
    if not isinstance(named, str) or not named:
        raise PasskeyRefused
    return named


def verified_use(answer: str, factor: StaffFactor, *, challenge: bytes, origin: str) -> int:
    """Return the sign count of a use of this very passkey by its user. Raises `PasskeyRefused`, also where the count did not rise."""
    document = _parsed(answer)
    try:
        handle = document["response"].get("userHandle")
        # WebAuthn, 7.2, step 6: the authenticator's word for whose it is must be the owner's.
        if handle and base64url_to_bytes(handle) != user_handle(factor.staff):
            raise PasskeyRefused
        found = webauthn.verify_authentication_response(
            credential=document,
            expected_challenge=challenge,
            expected_rp_id=settings.PLATFORM_HOST,
            expected_origin=origin,
            credential_public_key=bytes(factor.public_key or b""),
            credential_current_sign_count=factor.sign_count,
            require_user_verification=True,
        )
    except _NONSENSE as error:
        raise PasskeyRefused from error
    return found.new_sign_count


def _parsed(answer: str) -> dict[str, Any]:
    if len(answer) > ANSWER_MOST_CHARACTERS:
        raise PasskeyRefused
    try:
        document = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise PasskeyRefused from error
    if not isinstance(document, dict) or not isinstance(document.get("response"), dict):
        raise PasskeyRefused
    return document


def _descriptors(factors: Iterable[StaffFactor]) -> list[PublicKeyCredentialDescriptor]:
    return [
        PublicKeyCredentialDescriptor(
            id=base64url_to_bytes(factor.credential_id or ""), transports=[AuthenticatorTransport(name) for name in factor.transports]
        )
        for factor in factors
    ]


def _as_document(options: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(webauthn.options_to_json(options))
    return document
