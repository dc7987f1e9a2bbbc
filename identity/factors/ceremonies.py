"""The two ceremonies of WebAuthn level 3, registration and use: the options for the browser, and the verification of its response.

Staff and end users have the same ceremonies. This module reads and writes no rows; services store the results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import webauthn
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url
from webauthn.helpers.cose import COSEAlgorithmIdentifier
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorAttachment,
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    CredentialDeviceType,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

ANSWER_MOST_CHARACTERS = 20_000
CHALLENGE_BYTES = 32
_ALGORITHMS = [COSEAlgorithmIdentifier.EDDSA, COSEAlgorithmIdentifier.ECDSA_SHA_256, COSEAlgorithmIdentifier.RSASSA_PKCS1_v1_5_SHA_256]
_TRANSPORTS = frozenset(transport.value for transport in AuthenticatorTransport)
# Exceptions of the library for malformed input of a browser or an attacker.
_NONSENSE = (WebAuthnException, ValueError, TypeError, KeyError, AttributeError, IndexError)


class CeremonyRefused(Exception):
    """The answer of the authenticator was not accepted."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


@dataclass(frozen=True)
class RelyingParty:
    """The domain of the keys, the name that authenticators show for it, and the only web origin whose pages may use the keys.

    `apps` are the accepted origins besides this web origin: mobile applications whose signing keys an administrator has registered.
    """

    id: str
    name: str
    origin: str
    apps: tuple[str, ...] = ()

    @property
    def origins(self) -> list[str]:
        """All accepted origins."""
        return [self.origin, *self.apps]


@dataclass(frozen=True)
class Account:
    """An account as authenticators see it. `handle` contains no personal data (WebAuthn, 14.6.1)."""

    handle: bytes
    name: str
    display_name: str = ""


@dataclass(frozen=True)
class Credential:
    """A registered key: its id in base64url, and its transports."""

    id: str
    transports: tuple[str, ...] = ()


@dataclass(frozen=True)
class NewCredential:
    """The verified result of a registration."""

    id: str
    public_key: bytes
    sign_count: int
    transports: tuple[str, ...] = ()
    aaguid: str = ""
    is_backed_up: bool = False
    is_synchronized: bool = False
    has_verified_user: bool = False


@dataclass(frozen=True)
class Use:
    """The verified result of a use."""

    sign_count: int
    is_backed_up: bool
    has_verified_user: bool


def registration_options(
    party: RelyingParty,
    account: Account,
    challenge: bytes,
    *,
    existing: Iterable[Credential] = (),
    attachment: str = "",
    is_passkey: bool = True,
) -> dict[str, Any]:
    """Return the options for the creation of a key. Keys that the account already has are excluded.

    A passkey is discoverable and verifies the user. Other keys supplement a password and need neither property. `attachment` is `platform`,
    `cross-platform`, or empty for both.
    """
    options = webauthn.generate_registration_options(
        rp_id=party.id,
        rp_name=party.name,
        user_name=account.name,
        user_display_name=account.display_name or account.name,
        user_id=account.handle,
        challenge=challenge,
        authenticator_selection=AuthenticatorSelectionCriteria(
            authenticator_attachment=AuthenticatorAttachment(attachment) if attachment else None,
            resident_key=ResidentKeyRequirement.REQUIRED if is_passkey else ResidentKeyRequirement.DISCOURAGED,
            user_verification=_verification(is_passkey=is_passkey),
        ),
        exclude_credentials=_descriptors(existing),
        supported_pub_key_algs=_ALGORITHMS,
    )
    return _as_document(options)


def use_options(party: RelyingParty, challenge: bytes, *, allowed: Iterable[Credential] = (), is_passkey: bool = True) -> dict[str, Any]:
    """Return the options for a signature with one of these keys. If no key is given, the browser may use any passkey for this domain."""
    options = webauthn.generate_authentication_options(
        rp_id=party.id, challenge=challenge, allow_credentials=_descriptors(allowed), user_verification=_verification(is_passkey=is_passkey)
    )
    return _as_document(options)


def verified_registration(
    answer: str | Mapping[str, Any], party: RelyingParty, *, challenge: bytes, is_passkey: bool = True
) -> NewCredential:
    """Verify the response to `registration_options` and return the new key. Raises `CeremonyRefused`."""
    document = parsed(answer)
    try:
        found = webauthn.verify_registration_response(
            credential=document,
            expected_challenge=challenge,
            expected_rp_id=party.id,
            expected_origin=party.origins,
            require_user_verification=is_passkey,
            supported_pub_key_algs=_ALGORITHMS,
        )
        told = document["response"].get("transports") or []
        transports = tuple(name for name in told if name in _TRANSPORTS)
    except _NONSENSE as error:
        raise CeremonyRefused from error
    return NewCredential(
        bytes_to_base64url(found.credential_id),
        found.credential_public_key,
        found.sign_count,
        transports,
        aaguid=found.aaguid,
        is_backed_up=found.credential_backed_up,
        is_synchronized=found.credential_device_type is CredentialDeviceType.MULTI_DEVICE,
        has_verified_user=found.user_verified,
    )


def credential_in(answer: str | Mapping[str, Any]) -> str:
    """Return the key id in a response. Nothing is verified yet. Raises `CeremonyRefused`."""
    named = parsed(answer).get("id")
    if not isinstance(named, str) or not named or "\x00" in named:
        raise CeremonyRefused
    return named


def verified_use(
    answer: str | Mapping[str, Any],
    party: RelyingParty,
    *,
    challenge: bytes,
    public_key: bytes,
    sign_count: int,
    handle: bytes,
    is_passkey: bool = True,
) -> Use:
    """Verify that this key, of the account with this handle, has signed the challenge, and return the result.

    Raises `CeremonyRefused`, also if the sign count did not increase. A count of 0 means that the authenticator does not count.
    """
    document = parsed(answer)
    try:
        told = document["response"].get("userHandle")
        # WebAuthn, 7.2, step 6: the key must belong to the account in the response of the authenticator.
        if told and base64url_to_bytes(told) != handle:
            raise CeremonyRefused
        found = webauthn.verify_authentication_response(
            credential=document,
            expected_challenge=challenge,
            expected_rp_id=party.id,
            expected_origin=party.origins,
            credential_public_key=public_key,
            credential_current_sign_count=sign_count,
            require_user_verification=is_passkey,
        )
    except _NONSENSE as error:
        raise CeremonyRefused from error
    return Use(found.new_sign_count, found.credential_backed_up, found.user_verified)


def parsed(answer: str | Mapping[str, Any]) -> dict[str, Any]:
    """Parse the response of a browser into an object. Raises `CeremonyRefused` for malformed input."""
    if not isinstance(answer, str):
        document: Any = dict(answer)
    elif len(answer) > ANSWER_MOST_CHARACTERS:
        raise CeremonyRefused
    else:
        try:
            document = json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise CeremonyRefused from error
    if not isinstance(document, dict) or not isinstance(document.get("response"), dict):
        raise CeremonyRefused
    return document


def _verification(*, is_passkey: bool) -> UserVerificationRequirement:
    return UserVerificationRequirement.REQUIRED if is_passkey else UserVerificationRequirement.DISCOURAGED


def _descriptors(credentials: Iterable[Credential]) -> list[PublicKeyCredentialDescriptor]:
    return [
        PublicKeyCredentialDescriptor(
            id=base64url_to_bytes(one.id), transports=[AuthenticatorTransport(name) for name in one.transports if name in _TRANSPORTS]
        )
        for one in credentials
    ]


def _as_document(options: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(webauthn.options_to_json(options))
    return document
