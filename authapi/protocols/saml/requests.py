"""Requests of applications: reads them (SAML core, 3.4.1) and verifies their signatures. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from authapi.protocols.saml.names import (
    PASSWORD_CLASS,
    PROTECTED_PASSWORD_CLASS,
    REQUEST_UNSUPPORTED,
    SECOND_FACTOR_CLASSES,
    UNSPECIFIED_CLASS,
    UNSUPPORTED_BINDING,
)
from authapi.protocols.saml.settings import SamlSettings
from authapi.xml.bindings import (
    HTTP_POST,
    is_query_signed,
    posted_message,
    redirected_message,
    verify_query,
)
from authapi.xml.failures import SignatureMissing, XmlError
from authapi.xml.names import SAML, SAMLP, qualified
from authapi.xml.parsing import Element, child, children, local_name, parse, text_of
from authapi.xml.verifying import verified

# Maximum length of the RelayState, in characters. SAML bindings, 3.4.3 allows at most 80 bytes, but applications send whole URLs.
MAX_RELAY_STATE = 4096
_MOST_CLASSES = 20
_LONGEST = 2048
_TRUE = ("true", "1")
_FALSE = ("false", "0")


class RequestUnusable(ValueError):
    """The request cannot be used."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


@dataclass(frozen=True)
class Sent:
    """A message from a browser: the parameter, its value and, for the redirect binding, the raw query."""

    parameter: str
    message: str = field(repr=False)
    relay_state: str = ""
    query: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class AuthnRequest:
    """A request of an application.

    Absent texts are empty. If the login began at this service (`is_unsolicited`), there was no request, and all texts are empty.
    """

    id: str = ""
    issuer: str = ""
    destination: str = ""
    address: str = ""
    address_index: int | None = None
    binding: str = ""
    is_forced: bool = False
    is_passive: bool = False
    name_id_format: str = ""
    sp_qualifier: str = ""
    contexts: tuple[str, ...] = ()
    comparison: str = "exact"
    subject: str = ""
    relay_state: str = ""

    @property
    def is_unsolicited(self) -> bool:
        return not self.id

    def state(self) -> dict[str, Any]:
        """Return the request as JSON, to store it in the row of a login."""
        return {**vars(self), "contexts": list(self.contexts)}

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> AuthnRequest:
        return cls(**{**state, "contexts": tuple(state["contexts"])})


def received(sent: Sent, settings: SamlSettings, expected: str) -> Element:
    """Return the root of a message of the type `expected`. Verifies the message if the application has registered certificates.

    With certificates, a signature is mandatory: in the URL if the message was sent by redirect, otherwise in the message. Raises
    `XmlError` and `RequestUnusable`.
    """
    raw = posted_message(sent.message) if sent.query is None else redirected_message(sent.message)
    root = parse(raw)
    if root.tag != qualified(SAMLP, expected):
        raise RequestUnusable(f"A {expected} of SAML 2.0 is expected, but the message is of the type {local_name(root)[:60]}.")
    if root.get("Version") != "2.0":
        raise RequestUnusable("Only version 2.0 of SAML is supported.")
    if not settings.requires_signed_requests:
        return root
    certificates = settings.signing_certificates
    if sent.query is None:
        return verified(root, certificates, allow_sha1=settings.allows_sha1)
    if not is_query_signed(sent.query):
        raise SignatureMissing("The request is not signed, and the application has registered a certificate for its requests.")
    verify_query(sent.query, sent.parameter, certificates, allow_sha1=settings.allows_sha1)
    return root


def read_request(sent: Sent, settings: SamlSettings, *, addresses: frozenset[str]) -> AuthnRequest:
    """Return a checked `AuthnRequest`. `addresses` are the addresses of this endpoint. Raises `RequestUnusable` with a text for the
    developer."""
    try:
        root = received(sent, settings, "AuthnRequest")
        request = _read(root)
    except XmlError as error:
        raise RequestUnusable(f"The SAML request is refused: {error}") from error
    if not request.id:
        raise RequestUnusable("The SAML request has no ID.")
    if not request.issuer:
        raise RequestUnusable("The SAML request has no Issuer.")
    # SAML bindings, 3.4.5.2 and 3.5.5.2: refuse a request that names another destination.
    if request.destination and request.destination.partition("?")[0] not in addresses:
        raise RequestUnusable(f"The Destination of the SAML request is not the address of this service, {min(addresses)}.")
    if len(sent.relay_state) > MAX_RELAY_STATE:
        raise RequestUnusable(f"RelayState has more than {MAX_RELAY_STATE} characters.")
    return replace(request, relay_state=sent.relay_state)


def unsupported(request: AuthnRequest) -> str:
    """Return the status code for an unsupported request, empty for a supported request."""
    if request.binding and request.binding != HTTP_POST:
        return UNSUPPORTED_BINDING
    return REQUEST_UNSUPPORTED if request.comparison not in ("exact", "minimum", "maximum", "better") else ""


def chosen_context(request: AuthnRequest, settings: SamlSettings, *, has_second_factor: bool) -> str | None:
    """Return the class of authentication for the answer, None if the login meets no requested class (SAML core, 3.3.2.2.1).

    Every login counts as a login with a password, because service providers request `PasswordProtectedTransport` even if they
    accept every kind of login. A class that requires a second factor needs a login with a second factor.
    """
    weak = _weak_classes(settings)
    strong = SECOND_FACTOR_CLASSES if has_second_factor else ()
    if not request.contexts:
        return settings.authn_context
    if request.comparison == "better":
        # With `better`, the class of the answer must be stronger than each requested class.
        return strong[0] if strong and all(each in weak for each in request.contexts) else None
    found = next((each for each in request.contexts if each in (*weak, *strong)), None)
    if found is None and request.comparison == "maximum":
        return settings.authn_context if any(each in SECOND_FACTOR_CLASSES for each in request.contexts) else None
    return found


def wished_contexts(request: AuthnRequest, settings: SamlSettings) -> tuple[str, ...]:
    """Return the classes for which a login must ask for a second factor, best first; empty if every login is enough.

    The classes of a request are ordered by preference (SAML core, 3.3.2.2.1), so if every login meets one of these classes, the classes
    after it have no effect. `better` demands a class above all requested classes. `maximum` allows every class up to the highest requested
    class, so every login is enough.
    """
    if request.comparison == "maximum":
        return ()
    weak = _weak_classes(settings)
    if request.comparison == "better":
        return SECOND_FACTOR_CLASSES if request.contexts and all(each in weak for each in request.contexts) else ()
    return tuple(takewhile(lambda each: each not in weak, request.contexts))


def _weak_classes(settings: SamlSettings) -> tuple[str, ...]:
    """Return the classes that every login meets."""
    return (settings.authn_context, UNSPECIFIED_CLASS, PASSWORD_CLASS, PROTECTED_PASSWORD_CLASS)


def _read(root: Element) -> AuthnRequest:
    policy = child(root, qualified(SAMLP, "NameIDPolicy"))
    asked = child(root, qualified(SAMLP, "RequestedAuthnContext"))
    return AuthnRequest(
        id=_bounded(root.get("ID")),
        issuer=_text(root, SAML, "Issuer"),
        destination=_bounded(root.get("Destination")),
        address=_bounded(root.get("AssertionConsumerServiceURL")),
        address_index=_number(root.get("AssertionConsumerServiceIndex")),
        binding=_bounded(root.get("ProtocolBinding")),
        is_forced=_switch(root.get("ForceAuthn")),
        is_passive=_switch(root.get("IsPassive")),
        name_id_format="" if policy is None else _bounded(policy.get("Format")),
        sp_qualifier="" if policy is None else _bounded(policy.get("SPNameQualifier")),
        contexts=() if asked is None else _contexts(asked),
        comparison="exact" if asked is None else asked.get("Comparison") or "exact",
        subject=_subject(root),
    )


def _contexts(asked: Element) -> tuple[str, ...]:
    found = tuple(_bounded(text_of(each)) for each in children(asked, qualified(SAML, "AuthnContextClassRef")))
    if len(found) > _MOST_CLASSES:
        raise RequestUnusable(f"The SAML request names more than {_MOST_CLASSES} classes of authentication.")
    return found


def _subject(root: Element) -> str:
    subject = child(root, qualified(SAML, "Subject"))
    named = None if subject is None else child(subject, qualified(SAML, "NameID"))
    return "" if named is None else _bounded(text_of(named))


def _text(root: Element, namespace: str, name: str) -> str:
    found = child(root, qualified(namespace, name))
    return "" if found is None else _bounded(text_of(found))


def _bounded(text: str | None) -> str:
    if len(text or "") > _LONGEST:
        raise RequestUnusable(f"A value of the SAML request has more than {_LONGEST} characters.")
    return text or ""


def _switch(text: str | None) -> bool:
    if text is None or text.strip() in _FALSE:
        return False
    if text.strip() in _TRUE:
        return True
    raise RequestUnusable("A boolean of the SAML request is neither true nor false.")


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.strip().isdecimal() or not 0 <= int(text) <= 65_535:
        raise RequestUnusable("The AssertionConsumerServiceIndex of the SAML request is not an index.")
    return int(text)


def stated_issuer(sent: Sent) -> str:
    """Return the unverified Issuer of a message. It selects the certificates that must verify the message. Raises `XmlError`."""
    root = parse(posted_message(sent.message) if sent.query is None else redirected_message(sent.message))
    found = child(root, qualified(SAML, "Issuer"))
    return "" if found is None else text_of(found)
