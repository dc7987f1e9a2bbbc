"""Turns a `wresult` into a trusted assertion (WS-Federation 1.2, 13.2.3). Pure: the clock is an argument.

The token is a SAML 1.1 or 2.0 assertion. The token does not name the request that it answers: `wctx` and the cookie of the browser bind the
token to a login, and the id of the token is accepted once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.certificates import Certificate
from authapi.upstream.saml.claims import NameId, Statement
from authapi.upstream.saml.facts import BEARER, Assertion, TimeUnreadable, instant_of
from authapi.upstream.saml.judging import LONGEST_LIFE, SKEW, check_audience, check_issuer, check_times
from authapi.upstream.saml.reading import assertion_of, saml, text_or_nothing
from authapi.upstream.saml.responses import Accepted, opened, verified_by
from authapi.xml.failures import XmlError
from authapi.xml.names import SAML11, SOAP12, WST, WST13, XENC, qualified
from authapi.xml.parsing import Element, child, children, local_name, parse, text_of

_SOAP11 = "http://schemas.xmlsoap.org/soap/envelope/"
_BEARER11 = "urn:oasis:names:tc:SAML:1.0:cm:bearer"
_TRUST = (WST, WST13)
_KNOWN_CONDITIONS = frozenset(qualified(SAML11, name) for name in ("AudienceRestrictionCondition", "DoNotCacheCondition"))
_LONGEST_TOLD = 300


@dataclass(frozen=True)
class Expected:
    """What a token must match. If `issuer` is empty, every issuer matches."""

    issuer: str
    realm: str
    now: datetime


def accepted_token(raw: bytes, certificates: Sequence[Certificate], expected: Expected, *, keys: Sequence[RSAPrivateKey] = ()) -> Accepted:
    """Return the assertion of a `wresult`. Raises `UpstreamFailed`.

    1. For a SOAP fault, an error with the provider's own text is raised.
    2. The one token is decrypted if needed, and its signature verified.
    3. The assertion must be for this service, and valid now.
    """
    try:
        root = parse(raw)
        _check_fault(root)
        element = _token(root, keys)
        is_saml2 = element.tag == saml("Assertion")
        element = verified_by(element, certificates, "token", id_attribute="ID" if is_saml2 else "AssertionID")
        assertion = assertion_of(element, keys) if is_saml2 else _assertion11(element)
    except XmlError as error:
        raise _refused(str(error)) from error
    return Accepted(assertion, _checked(assertion, expected, is_saml2=is_saml2))


def _checked(assertion: Assertion, expected: Expected, *, is_saml2: bool) -> datetime:
    check_issuer(assertion.statement.issuer, expected.issuer, is_required=True)
    if not assertion.id:
        raise _refused("The token has no id.")
    if not assertion.has_authentication:
        raise _refused("The token has no statement about a login: it only describes attributes.")
    check_audience(assertion.audiences, expected.realm)
    check_times("The token", assertion.not_before, assertion.not_on_or_after, expected.now)
    if is_saml2:
        _check_bearer(assertion, expected.now)
    if assertion.not_on_or_after is None:
        raise _refused("The token has no NotOnOrAfter.")
    if assertion.not_on_or_after > expected.now + LONGEST_LIFE + timedelta(minutes=5):
        raise _refused("The token is valid for more than a day. Shorten the lifetime of tokens at the provider.")
    return assertion.not_on_or_after + SKEW


def _check_bearer(assertion: Assertion, now: datetime) -> None:
    """Check that the sender of a SAML 2.0 token need not prove a key (SAML Core 2.0, 2.4.1): WS-Federation has no such proof."""
    bearers = [one for one in assertion.confirmations if one.method == BEARER]
    if not bearers:
        raise _refused("The token has no SubjectConfirmation of the method bearer.")
    refusals = []
    for confirmation in bearers:
        try:
            check_times("The SubjectConfirmation", confirmation.not_before, confirmation.not_on_or_after, now)
        except UpstreamFailed as refused:
            refusals.append(refused)
    if len(refusals) == len(bearers):
        raise refusals[0]


def _check_fault(root: Element) -> None:
    for namespace in (SOAP12, _SOAP11):
        if root.tag != qualified(namespace, "Envelope"):
            continue
        texts = [text_or_nothing(one) for one in root.iter(qualified(namespace, "Text"), "faultstring")]
        told = "".join(character for character in " ".join(texts) if character.isprintable())[:_LONGEST_TOLD]
        raise UpstreamFailed(LoginCase.UPSTREAM_DENIED, told or "The provider sent a SOAP fault without a reason.")


def _token(root: Element, keys: Sequence[RSAPrivateKey]) -> Element:
    found = _holders(root)
    if len(found) != 1:
        raise _refused(f"A RequestSecurityTokenResponse with one token is expected; the message is {local_name(root)[:60]}.")
    holder = found[0]
    if child(holder, qualified(XENC, "EncryptedData")) is not None:
        element = opened(holder, keys)
    else:
        inside = list(holder)
        if len(inside) != 1:
            raise _refused("The RequestedSecurityToken must have exactly one token.")
        element = opened(inside[0], keys) if inside[0].tag == saml("EncryptedAssertion") else inside[0]
    if element.tag not in (saml("Assertion"), _saml11("Assertion")):
        raise _refused(f"The token is not a SAML assertion: {local_name(element)[:60]}.")
    return element


def _holders(root: Element) -> list[Element]:
    """Return each RequestedSecurityToken of one response, or of all responses in a collection (WS-Trust 1.3)."""
    for namespace in _TRUST:
        if root.tag == qualified(namespace, "RequestSecurityTokenResponseCollection"):
            responses = list(children(root, qualified(namespace, "RequestSecurityTokenResponse")))
        elif root.tag == qualified(namespace, "RequestSecurityTokenResponse"):
            responses = [root]
        else:
            continue
        return [holder for one in responses for holder in children(one, qualified(namespace, "RequestedSecurityToken"))]
    return []


def _assertion11(element: Element) -> Assertion:
    """Read a verified assertion of SAML 1.1."""
    if (element.get("MajorVersion"), element.get("MinorVersion")) != ("1", "1"):
        raise _refused("The token is not an assertion of SAML 1.1.")
    conditions, login = child(element, _saml11("Conditions")), child(element, _saml11("AuthenticationStatement"))
    try:
        return Assertion(
            id=element.get("AssertionID") or "",
            statement=Statement(element.get("Issuer") or "", _name(element), _attributes(element)),
            not_before=None if conditions is None else instant_of(conditions.get("NotBefore")),
            not_on_or_after=None if conditions is None else instant_of(conditions.get("NotOnOrAfter")),
            audiences=_audiences(conditions),
            authenticated_at=None if login is None else instant_of(login.get("AuthenticationInstant")),
            has_authentication=login is not None,
        )
    except TimeUnreadable as error:
        raise _refused("A time in the token cannot be read.") from error


def _audiences(conditions: Element | None) -> tuple[tuple[str, ...], ...]:
    if conditions is None:
        return ()
    # SAML 1.1 Core, 2.3.2.1: an assertion with an unknown condition is not valid.
    unknown = next((condition for condition in conditions if condition.tag not in _KNOWN_CONDITIONS), None)
    if unknown is not None:
        raise _refused(f"The token has an unknown condition: {local_name(unknown)[:60]}.")
    restrictions = children(conditions, _saml11("AudienceRestrictionCondition"))
    return tuple(tuple(text_of(audience) for audience in children(restriction, _saml11("Audience"))) for restriction in restrictions)


def _name(element: Element) -> NameId | None:
    """Return the name of the subject. All statements must name the same subject.

    If a subject lists confirmation methods, bearer must be one of them.
    """
    names: set[NameId] = set()
    for statement in element:
        subject = child(statement, _saml11("Subject"))
        if subject is None:
            continue
        _check_confirmation(subject)
        named = child(subject, _saml11("NameIdentifier"))
        if named is not None and text_of(named):
            names.add(NameId(text_of(named), named.get("Format") or "", named.get("NameQualifier") or ""))
    if len(names) > 1:
        raise _refused("The statements of the token are about several users.")
    return next(iter(names), None)


def _check_confirmation(subject: Element) -> None:
    confirmation = child(subject, _saml11("SubjectConfirmation"))
    methods = [] if confirmation is None else [text_of(method) for method in children(confirmation, _saml11("ConfirmationMethod"))]
    if methods and _BEARER11 not in methods:
        raise _refused("The token does not have the confirmation method bearer.")


def _attributes(element: Element) -> dict[str, tuple[str, ...]]:
    """Return the values of each attribute by its claim URI: `AttributeNamespace`, a slash, and `AttributeName`.

    The values are also returned under the last part of the URI, unless another attribute has exactly this name.
    """
    found: dict[str, tuple[str, ...]] = {}
    short: dict[str, tuple[str, ...]] = {}
    for statement in children(element, _saml11("AttributeStatement")):
        for attribute in children(statement, _saml11("Attribute")):
            namespace, name = attribute.get("AttributeNamespace") or "", attribute.get("AttributeName") or ""
            values = tuple(text_or_nothing(value) for value in children(attribute, _saml11("AttributeValue")))
            uri = f"{namespace.rstrip('/')}/{name}" if namespace else name
            found[uri] = (*found.get(uri, ()), *values)
            short.setdefault(name, values)
    return {**short, **found}


def _saml11(name: str) -> str:
    return qualified(SAML11, name)


def _refused(detail: str) -> UpstreamFailed:
    return UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, detail)
