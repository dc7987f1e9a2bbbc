"""Contexts of authentication that a client may request, and the methods that meet each of them. One table for all protocols. Pure.

In OpenID Connect, contexts are in `acr_values` and in the claim `acr`. In SAML, they are in `RequestedAuthnContext`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# The method that a session records for any kind of second factor.
SECOND_FACTOR = "mfa"
# Methods that every tenant offers: a password, a code or link that was sent, a passkey, and a login at a provider. A tenant with second
# factors also offers the method `SECOND_FACTOR`.
PROVABLE = frozenset({"pwd", "otp", "federated", "pop"})

ANY_LOGIN = "1"
PASSWORD = "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport"  # noqa: S105  (the name of a context)
# Contexts that require a second factor, by the names that providers, federations and client libraries use.
SECOND_FACTORS = (
    "https://refeds.org/profile/mfa",
    "http://schemas.openid.net/pape/policies/2007/06/multi-factor",
    "urn:oasis:names:tc:SAML:2.0:ac:classes:TimeSyncToken",
    "urn:oasis:names:tc:SAML:2.0:ac:classes:MobileTwoFactorContract",
    "urn:oasis:names:tc:SAML:2.0:ac:classes:MobileTwoFactorUnregistered",
    "http://schemas.microsoft.com/claims/multipleauthn",
)
# Each context with the methods that meet it, one of which is enough. The strongest context comes first.
CONTEXTS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(SECOND_FACTORS, frozenset({SECOND_FACTOR})),
    PASSWORD: frozenset({"pwd"}),
    ANY_LOGIN: PROVABLE,
}


def offered(chosen: Iterable[str] = (), *, has_second_factors: bool = False) -> tuple[str, ...]:
    """Return the contexts that a tenant offers, strongest first: the contexts in `chosen`, or all contexts if `chosen` is empty.

    Contexts that no login can meet are omitted.
    """
    wanted = frozenset(chosen) or CONTEXTS.keys()
    provable = PROVABLE | {SECOND_FACTOR} if has_second_factors else PROVABLE
    return tuple(name for name, methods in CONTEXTS.items() if name in wanted and methods & provable)


def met(asked: Iterable[str], methods: Iterable[Mapping[str, Any]], *, among: Iterable[str]) -> str:
    """Return the first requested context that is in `among`, and that the methods of a session meet; empty if there is none."""
    proven, counting = names_of(methods), frozenset(among)
    return next((name for name in asked if name in counting and CONTEXTS[name] & proven), "")


def names_of(methods: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(str(method["name"]) for method in methods)


def has_second_factor(methods: Iterable[Mapping[str, Any]]) -> bool:
    return SECOND_FACTOR in names_of(methods)
