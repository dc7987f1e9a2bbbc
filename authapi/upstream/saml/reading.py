"""Reads the XML of SAML messages into plain values.

Values of unsigned elements are untrusted: callers may compare or show them, and use them for nothing else. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.claims import NameId, Statement
from authapi.upstream.saml.facts import Assertion, Confirmation, Response, TimeUnreadable, instant_of
from authapi.xml.encryption import decrypted
from authapi.xml.failures import AmbiguousText
from authapi.xml.names import SAML, SAMLP, qualified
from authapi.xml.parsing import Element, child, children, local_name, text_of

# The limit is high, because the attribute with the groups of a user has one value for each group.
_MOST_VALUES = 5_000
_KNOWN_CONDITIONS = frozenset(qualified(SAML, name) for name in ("AudienceRestriction", "OneTimeUse", "ProxyRestriction"))


def saml(name: str) -> str:
    return qualified(SAML, name)


def samlp(name: str) -> str:
    return qualified(SAMLP, name)


def response_of(root: Element, *, is_signed: bool = False) -> Response:
    """Read the parts of a response outside its assertion."""
    codes, message = status_of(root)
    return Response(
        id=root.get("ID") or "",
        issuer=issuer_of(root),
        destination=root.get("Destination") or "",
        in_response_to=root.get("InResponseTo") or "",
        status_codes=codes,
        status_message=message,
        is_signed=is_signed,
    )


def status_of(root: Element) -> tuple[tuple[str, ...], str]:
    """Return the status codes from the outermost to the innermost, and the message."""
    status = child(root, samlp("Status"))
    if status is None:
        return (), ""
    codes: list[str] = []
    inner = child(status, samlp("StatusCode"))
    while inner is not None and len(codes) < 8:
        codes.append(inner.get("Value") or "")
        inner = child(inner, samlp("StatusCode"))
    message = child(status, samlp("StatusMessage"))
    return tuple(codes), "" if message is None else text_or_nothing(message)


def issuer_of(element: Element) -> str:
    issuer = child(element, saml("Issuer"))
    return "" if issuer is None else text_of(issuer)


def assertion_of(element: Element, keys: Sequence[RSAPrivateKey] = ()) -> Assertion:
    """Read a verified assertion; `keys` decrypt an encrypted NameID. Raises `UpstreamFailed` and `XmlError`."""
    if element.get("Version") != "2.0":
        raise _refused(f"The assertion is of SAML {(element.get('Version') or 'without a version')[:20]}; 2.0 is needed.")
    subject, conditions, login = (child(element, saml(name)) for name in ("Subject", "Conditions", "AuthnStatement"))
    try:
        return Assertion(
            id=element.get("ID") or "",
            statement=Statement(
                issuer=issuer_of(element),
                name_id=name_id_in(subject, keys),
                attributes=_attributes(element),
                session_index="" if login is None else login.get("SessionIndex") or "",
            ),
            confirmations=() if subject is None else tuple(map(_confirmation, children(subject, saml("SubjectConfirmation")))),
            not_before=None if conditions is None else instant_of(conditions.get("NotBefore")),
            not_on_or_after=None if conditions is None else instant_of(conditions.get("NotOnOrAfter")),
            audiences=_audiences(conditions),
            authenticated_at=None if login is None else instant_of(login.get("AuthnInstant")),
            session_ends_at=None if login is None else instant_of(login.get("SessionNotOnOrAfter")),
            has_authentication=login is not None,
        )
    except TimeUnreadable as error:
        raise _refused("A time in the assertion cannot be read.") from error


def name_id_in(holder: Element | None, keys: Sequence[RSAPrivateKey] = ()) -> NameId | None:
    """Return the NameID of a subject or of a logout request, decrypted if needed."""
    if holder is None:
        return None
    named = child(holder, saml("NameID"))
    if named is None:
        encrypted = child(holder, saml("EncryptedID"))
        named = None if encrypted is None else decrypted(encrypted, keys)
    if named is None or named.tag != saml("NameID") or not text_of(named):
        return None
    return NameId(text_of(named), *(named.get(name) or "" for name in ("Format", "NameQualifier", "SPNameQualifier")))


def _confirmation(element: Element) -> Confirmation:
    data = child(element, saml("SubjectConfirmationData"))
    method = element.get("Method") or ""
    if data is None:
        return Confirmation(method)
    return Confirmation(
        method,
        recipient=data.get("Recipient") or "",
        in_response_to=data.get("InResponseTo") or "",
        not_before=instant_of(data.get("NotBefore")),
        not_on_or_after=instant_of(data.get("NotOnOrAfter")),
    )


def _audiences(conditions: Element | None) -> tuple[tuple[str, ...], ...]:
    if conditions is None:
        return ()
    # SAML Core 2.0, 2.5.1: an assertion with an unknown condition is not valid.
    unknown = next((condition for condition in conditions if condition.tag not in _KNOWN_CONDITIONS), None)
    if unknown is not None:
        raise _refused(f"The assertion has an unknown condition: {local_name(unknown)[:60]}.")
    restrictions = children(conditions, saml("AudienceRestriction"))
    return tuple(tuple(text_of(audience) for audience in children(restriction, saml("Audience"))) for restriction in restrictions)


def _attributes(element: Element) -> dict[str, tuple[str, ...]]:
    """Return the values of each attribute by its name, and by its friendly name if no other attribute has that name."""
    found: dict[str, tuple[str, ...]] = {}
    friendly: dict[str, tuple[str, ...]] = {}
    count = 0
    for statement in children(element, saml("AttributeStatement")):
        for attribute in children(statement, saml("Attribute")):
            values = tuple(text_or_nothing(value) for value in children(attribute, saml("AttributeValue")))
            count += len(values)
            if count > _MOST_VALUES:
                raise _refused(f"The assertion has more than {_MOST_VALUES} values of attributes.")
            name = attribute.get("Name") or ""
            found[name] = (*found.get(name, ()), *values)
            if attribute.get("FriendlyName"):
                friendly.setdefault(attribute.get("FriendlyName") or "", values)
    return {**friendly, **found}


def text_or_nothing(element: Element) -> str:
    """Return the text of a value; empty for a value that consists of elements."""
    try:
        return text_of(element)
    except AmbiguousText:
        return ""


def _refused(detail: str) -> UpstreamFailed:
    return UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, detail)
