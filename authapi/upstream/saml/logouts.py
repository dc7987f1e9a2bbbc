"""Checks logout messages of a provider: its requests, and its answers to requests of this service. Pure: the clock is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.claims import NameId
from authapi.upstream.saml.facts import TimeUnreadable, instant_of
from authapi.upstream.saml.judging import SKEW
from authapi.upstream.saml.provider import SamlProvider
from authapi.upstream.saml.reading import issuer_of, name_id_in, samlp, status_of
from authapi.upstream.saml.statuses import SUCCESS, status_words
from authapi.xml.bindings import REQUEST, RESPONSE, posted_message, redirected_message, verify_query
from authapi.xml.failures import XmlError
from authapi.xml.parsing import Element, children, local_name, parse, text_of
from authapi.xml.verifying import verified

# The maximum age of a request without an expiry, so that an old URL from a browser history ends no login.
_LONGEST_AGE = SKEW


@dataclass(frozen=True)
class Sent:
    """The parameters that a browser sent. For the redirect binding, also the unchanged query string."""

    parameters: dict[str, str]
    query: str | None = None

    @property
    def is_redirect(self) -> bool:
        return self.query is not None


@dataclass(frozen=True)
class LogoutDemand:
    """A verified request of the provider to end logins. Without session indexes, all logins of the user end."""

    id: str
    name_id: NameId
    session_indexes: tuple[str, ...]


def logout_demand(
    sent: Sent, provider: SamlProvider, *, addresses: frozenset[str], keys: Sequence[RSAPrivateKey], now: datetime
) -> LogoutDemand:
    """Return a logout request of the provider. The request must be signed (SAML Profiles 2.0, 4.4.3.1). Raises `UpstreamFailed`."""
    try:
        root = _verified(sent, provider, REQUEST, "LogoutRequest")
        _check(root, provider, addresses)
        _check_age(root, now)
        name_id = name_id_in(root, keys)
        if name_id is None or not root.get("ID"):
            raise _refused("The logout request has no ID, or names no user.")
        indexes = tuple(text_of(index) for index in children(root, samlp("SessionIndex")))
    except XmlError as error:
        raise _refused(f"The logout request is refused: {error}") from error
    return LogoutDemand(root.get("ID") or "", name_id, indexes)


def check_logout_answer(sent: Sent, provider: SamlProvider, *, addresses: frozenset[str], request_id: str) -> None:
    """Check the answer to a request of this service. Raises `UpstreamFailed`, also if the provider could not end the login."""
    try:
        root = _verified(sent, provider, RESPONSE, "LogoutResponse")
        _check(root, provider, addresses)
        if root.get("InResponseTo") != request_id:
            raise _refused("The logout response answers another request.")
        codes, message = status_of(root)
    except XmlError as error:
        raise _refused(f"The logout response is refused: {error}") from error
    if codes[:1] != (SUCCESS,) or "PartialLogout" in codes[-1]:
        raise UpstreamFailed(LoginCase.UPSTREAM_DENIED, status_words(codes, message))


def _verified(sent: Sent, provider: SamlProvider, parameter: str, expected: str) -> Element:
    """Return the message after its signature is verified: a signature in the query string, or a signature inside the message."""
    text = sent.parameters.get(parameter, "")
    certificates = [certificate.parsed for certificate in provider.certificates]
    if sent.query is not None:
        verify_query(sent.query, parameter, certificates)
        root = parse(redirected_message(text))
    else:
        root = parse(posted_message(text))
    if root.tag != samlp(expected) or root.get("Version") != "2.0":
        raise _refused(f"A {expected} of SAML 2.0 is expected; the message is of the type {local_name(root)[:60]}.")
    return root if sent.is_redirect else verified(root, certificates)


def _check(root: Element, provider: SamlProvider, addresses: frozenset[str]) -> None:
    issuer, destination = issuer_of(root), root.get("Destination") or ""
    if provider.entity_id and issuer != provider.entity_id:
        raise UpstreamFailed(
            LoginCase.UPSTREAM_ISSUER_MISMATCH, "The issuer of the logout message differs from the issuer in the metadata of the provider."
        )
    # SAML Bindings 2.0, 3.4.5.2 and 3.5.5.2: a signed message must name its destination.
    if destination not in addresses:
        raise _refused(f"The Destination of the logout message is not '{max(addresses, key=len, default='')}'.")


def _check_age(root: Element, now: datetime) -> None:
    try:
        issued, ends = instant_of(root.get("IssueInstant")), instant_of(root.get("NotOnOrAfter"))
    except TimeUnreadable as error:
        raise _refused("A time in the logout request cannot be read.") from error
    if issued is None or issued - SKEW > now or (ends or issued + _LONGEST_AGE) + SKEW <= now:
        raise _refused("The logout request is too old, or its time is in the future. Compare the clocks of both servers.")


def _refused(detail: str) -> UpstreamFailed:
    return UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, detail)
