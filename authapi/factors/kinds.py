"""The kinds of factors with all their names: internal, in the API, and in tokens. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from authapi.tokens.contexts import SECOND_FACTOR

TOTP, PHONE, EMAIL = "totp", "phone", "email"
WEBAUTHN_ROAMING, WEBAUTHN_PLATFORM = "webauthn-roaming", "webauthn-platform"
PASSKEY, RECOVERY_CODE = "passkey", "recovery-code"


@dataclass(frozen=True)
class FactorKind:
    """One kind. `factor` is its name in the tenant settings. `type` and `channel` are its names in the API for applications.

    `methods` are the values that a successful proof adds to the session and to `amr` (RFC 8176, 2).
    """

    kind: str
    factor: str
    type: str
    methods: tuple[str, ...]
    channel: str = ""
    # The login method that proves possession of the same thing. After a login with this method, the kind does not count as a second factor.
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
# The factors that a tenant can enable, by their names in the management interface, strongest first.
FACTORS = (*(each.factor for each in KINDS.values()), RECOVERY_CODE)
RECOVERY_METHODS = ("otp",)
# A passkey that has verified its user proves two factors: possession, and either knowledge or inherence.
PASSKEY_METHODS = ("pop", "user", SECOND_FACTOR)


def kinds_of(factors: Iterable[str]) -> tuple[str, ...]:
    """Return the kinds of a tenant's factors, strongest first. Recovery codes are not included."""
    wanted = frozenset(factors)
    return tuple(each.kind for each in KINDS.values() if each.factor in wanted)


def is_second_to(kind: str, methods: Collection[str]) -> bool:
    """Tell whether a factor of this kind proves something that the methods of a session do not prove."""
    return not KINDS[kind].repeats or KINDS[kind].repeats not in methods


def methods_of(kind: str) -> tuple[str, ...]:
    """Return the methods that a session has after a factor of this kind was proven."""
    return (SECOND_FACTOR, *(RECOVERY_METHODS if kind == RECOVERY_CODE else KINDS[kind].methods))
