"""The kinds of factors under each of their names: ours, those of the wire, and those that tokens say. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from authapi.tokens.contexts import SECOND_FACTOR

TOTP, PHONE, EMAIL = "totp", "phone", "email"
WEBAUTHN_ROAMING, WEBAUTHN_PLATFORM = "webauthn-roaming", "webauthn-platform"
PASSKEY, RECOVERY_CODE = "passkey", "recovery-code"


@dataclass(frozen=True)
class FactorKind:
    """One kind. `factor` is its name among a tenant's factors, `type` and `channel` those of the API for applications.

    `methods` are what a session and `amr` say once it has proven something (RFC 8176, 2).
    """

    kind: str
    factor: str
    type: str
    methods: tuple[str, ...]
    channel: str = ""
    # A first proof that went the same way proves the same: it is no second one.
    repeats: str = ""


KINDS: dict[str, FactorKind] = {
    each.kind: each
    for each in (
        FactorKind(WEBAUTHN_PLATFORM, "webauthn-platform", "webauthn-platform", ("pop", "user")),
        FactorKind(WEBAUTHN_ROAMING, "webauthn-roaming", "webauthn-roaming", ("pop", "user")),
        FactorKind(TOTP, "otp", "otp", ("otp",)),
        FactorKind(PHONE, "sms", "oob", ("otp", "sms"), channel="sms", repeats="sms"),
        FactorKind(EMAIL, "email", "oob", ("otp", "email"), channel="email", repeats="email"),
    )
}
# What a tenant switches on, by the names of the management interface, strongest first.
FACTORS = (*(each.factor for each in KINDS.values()), RECOVERY_CODE)
RECOVERY_METHODS = ("otp",)
# A passkey that has verified its user is possession and knowledge or inherence at once.
PASSKEY_METHODS = ("pop", "user", SECOND_FACTOR)


def kinds_of(factors: Iterable[str]) -> tuple[str, ...]:
    """Return the kinds of a tenant's factors, strongest first; recovery codes are none of them."""
    wanted = frozenset(factors)
    return tuple(each.kind for each in KINDS.values() if each.factor in wanted)


def is_second_to(kind: str, methods: Collection[str]) -> bool:
    """Tell whether a factor of this kind proves anything that the methods of a session do not prove already."""
    return not KINDS[kind].repeats or KINDS[kind].repeats not in methods


def methods_of(kind: str) -> tuple[str, ...]:
    """Return what a session says once a factor of this kind was passed."""
    return (SECOND_FACTOR, *(RECOVERY_METHODS if kind == RECOVERY_CODE else KINDS[kind].methods))
