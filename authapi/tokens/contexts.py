"""Contexts of authentication: what a client may ask of a login, and which methods meet it. One table for every protocol. Pure.

OpenID Connect names them in `acr_values` and in the claim `acr`, SAML in `RequestedAuthnContext`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# How a session names a second factor among its methods, whatever it was.
SECOND_FACTOR = "mfa"
# What every login can prove: a password, a code or link that was sent, a passkey, a login at a provider. A tenant that offers second
# factors adds those.
PROVABLE = frozenset({"pwd", "otp", "federated", "pop"})

ANY_LOGIN = "1"
PASSWORD = "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport"  # noqa: S105  (the name of a context)
# Classes that ask for a second factor, as providers, federations and client libraries name them.
SECOND_FACTORS = (
    "https://refeds.org/profile/mfa",
    "http://schemas.openid.net/pape/policies/2007/06/multi-factor",
    "urn:oasis:names:tc:SAML:2.0:ac:classes:TimeSyncToken",
    "urn:oasis:names:tc:SAML:2.0:ac:classes:MobileTwoFactorContract",
    "urn:oasis:names:tc:SAML:2.0:ac:classes:MobileTwoFactorUnregistered",
    "http://schemas.microsoft.com/claims/multipleauthn",
)
# Context -> the methods of which one meets it, the strongest context first.
CONTEXTS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(SECOND_FACTORS, frozenset({SECOND_FACTOR})),
    PASSWORD: frozenset({"pwd"}),
    ANY_LOGIN: PROVABLE,
}


def offered(chosen: Iterable[str] = (), *, has_second_factors: bool = False) -> tuple[str, ...]:
    """Return the contexts that a tenant offers, the strongest first: those it has chosen, else all, as far as a login can meet them."""
    wanted = frozenset(chosen) or CONTEXTS.keys()
    provable = PROVABLE | {SECOND_FACTOR} if has_second_factors else PROVABLE
    return tuple(name for name, methods in CONTEXTS.items() if name in wanted and methods & provable)


def met(asked: Iterable[str], methods: Iterable[Mapping[str, Any]], *, among: Iterable[str]) -> str:
    """Return the first of the contexts asked for that the methods of a session meet; empty for none. Only those `among` count."""
    proven, counting = names_of(methods), frozenset(among)
    return next((name for name in asked if name in counting and CONTEXTS[name] & proven), "")


def names_of(methods: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(str(method["name"]) for method in methods)


def has_second_factor(methods: Iterable[Mapping[str, Any]]) -> bool:
    return SECOND_FACTOR in names_of(methods)
