"""Tokens and answers of WS-Federation. Pure. A token is a SAML 1.1 assertion or a JWT.

An answer is either a RequestSecurityTokenResponse, which contains a token, or a SOAP fault. Existing middleware expects this order of
elements and these prefixes (contract, 2.7).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson
from cryptography.hazmat.primitives import hashes

from authapi.xml.bindings import Signer
from authapi.xml.building import element, with_prefixes
from authapi.xml.names import SAML11, SOAP12, WSA, WSP, WSSE, WST, WSU, XML, qualified
from authapi.xml.parsing import Element, serialized
from authapi.xml.signing import sign_octets

SAML11_TOKEN = "urn:oasis:names:tc:SAML:1.0:assertion"  # noqa: S105  (the name of a type)
JWT_TOKEN = "urn:ietf:params:oauth:token-type:jwt"  # noqa: S105  (the name of a type)
_BEARER = "urn:oasis:names:tc:SAML:1.0:cm:bearer"
_BASE64 = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0#Base64Binary"
UNSPECIFIED = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
# SAML 1.1 Core, 7.1: how the user authenticated.
_METHODS = {
    "pwd": "urn:oasis:names:tc:SAML:1.0:am:password",
}
_UNSPECIFIED_METHOD = "urn:oasis:names:tc:SAML:1.0:am:unspecified"


@dataclass(frozen=True)
class Subject:
    """The user of a token, with the claims. `attributes` maps each claim URI to its values, in order."""

    name: str
    attributes: Mapping[str, Sequence[str]]
    authenticated_at: datetime
    method: str = ""
    format: str = UNSPECIFIED


@dataclass(frozen=True)
class Scope:
    """The issuer, the audience and the validity of a token."""

    issuer: str
    audience: str
    issued_at: datetime
    lifetime: timedelta

    @property
    def ends_at(self) -> datetime:
        return self.issued_at + self.lifetime


def assertion(assertion_id: str, subject: Subject, scope: Scope, signer: Signer) -> Element:
    """Return a signed SAML 1.1 assertion. The signature is the last element, as in the schema."""
    made = element(
        _saml("Assertion"),
        {
            "MajorVersion": "1",
            "MinorVersion": "1",
            "AssertionID": assertion_id,
            "Issuer": scope.issuer,
            "IssueInstant": _instant(scope.issued_at),
        },
        element(
            _saml("Conditions"),
            {"NotBefore": _instant(scope.issued_at), "NotOnOrAfter": _instant(scope.ends_at)},
            element(_saml("AudienceRestrictionCondition"), None, element(_saml("Audience"), None, scope.audience)),
        ),
        _attribute_statement(subject),
        element(
            _saml("AuthenticationStatement"),
            {
                "AuthenticationMethod": _METHODS.get(subject.method, _UNSPECIFIED_METHOD),
                "AuthenticationInstant": _instant(subject.authenticated_at),
            },
            _subject(subject),
        ),
    )
    return signer.signed(made, place=None, id_attribute="AssertionID")


def _attribute_statement(subject: Subject) -> Element | None:
    """Return the statement; None if there are no attributes, because SAML 1.1 demands at least one attribute."""
    attributes = [_attribute(uri, values) for uri, values in subject.attributes.items() if values]
    return element(_saml("AttributeStatement"), None, _subject(subject), *attributes) if attributes else None


def _attribute(uri: str, values: Sequence[str]) -> Element:
    """Return an attribute whose name is the last part of the URI and whose namespace is the rest."""
    namespace, _, name = uri.rpartition("/")
    return element(
        _saml("Attribute"),
        {"AttributeName": name or uri, "AttributeNamespace": namespace},
        *(element(_saml("AttributeValue"), None, value) for value in values),
    )


def _subject(subject: Subject) -> Element:
    return element(
        _saml("Subject"),
        None,
        element(_saml("NameIdentifier"), {"Format": subject.format}, subject.name),
        element(_saml("SubjectConfirmation"), None, element(_saml("ConfirmationMethod"), None, _BEARER)),
    )


def binary_token(token_id: str, jwt: str) -> Element:
    """Return a JWT as an XML element."""
    attributes = {qualified(WSU, "Id"): token_id, "ValueType": JWT_TOKEN, "EncodingType": _BASE64}
    return element(qualified(WSSE, "BinarySecurityToken"), attributes, base64.b64encode(jwt.encode()).decode())


def response(token: Element, *, token_type: str, scope: Scope, context: str | None) -> str:
    """Return the `wresult` of a successful answer."""
    made = element(
        _wst("RequestSecurityTokenResponse"),
        {"Context": context or None},
        element(
            _wst("Lifetime"),
            None,
            element(qualified(WSU, "Created"), None, _instant(scope.issued_at)),
            element(qualified(WSU, "Expires"), None, _instant(scope.ends_at)),
        ),
        element(
            qualified(WSP, "AppliesTo"),
            None,
            element(qualified(WSA, "EndpointReference"), None, element(qualified(WSA, "Address"), None, scope.audience)),
        ),
        element(_wst("RequestedSecurityToken"), None, token),
        element(_wst("TokenType"), None, token_type),
        element(_wst("RequestType"), None, f"{WST}/Issue"),
        element(_wst("KeyType"), None, "http://schemas.xmlsoap.org/ws/2005/05/identity/NoProofKey"),
    )
    return serialized(made).decode()


def fault(message: str, *, subcode: str = "RequestFailed", detail: str = "") -> str:
    """Return the `wresult` of a refusal: a SOAP 1.2 fault with a code of WS-Trust."""
    code = element(
        _soap("Code"),
        None,
        element(_soap("Value"), None, "soap:Sender"),
        element(_soap("Subcode"), None, with_prefixes(element(_soap("Value"), None, f"t:{subcode}"), "t")),
    )
    reason = element(_soap("Reason"), None, element(_soap("Text"), {qualified(XML, "lang"): "en"}, message))
    more = element(_soap("Detail"), None, element(_wst("Error"), None, detail)) if detail else None
    made = element(_soap("Envelope"), None, element(_soap("Body"), None, element(_soap("Fault"), None, code, reason, more)))
    return serialized(made).decode()


def _instant(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _saml(name: str) -> str:
    return qualified(SAML11, name)


def _wst(name: str) -> str:
    return qualified(WST, name)


def _soap(name: str) -> str:
    return qualified(SOAP12, name)


def jwt(subject: Subject, scope: Scope, signer: Signer) -> str:
    """Return a JWT about the subject, signed with the private key of `signer` (RFC 7515, 7519)."""
    times = {"iat": scope.issued_at, "nbf": scope.issued_at, "exp": scope.ends_at, "auth_time": subject.authenticated_at}
    claims = {
        **{uri: values[0] if len(values) == 1 else list(values) for uri, values in subject.attributes.items() if values},
        "iss": scope.issuer,
        "aud": scope.audience,
        "sub": subject.name,
        **{name: int(moment.timestamp()) for name, moment in times.items()},
    }
    # RFC 7515, 4.1.7: .NET finds the key by the thumbprint. The thumbprint identifies a certificate and protects nothing.
    thumbprint = _encoded(signer.certificate.fingerprint(hashes.SHA1()))  # noqa: S303  # nosec B303
    header = {"alg": "RS256", "typ": "JWT", "x5t": thumbprint}
    content = f"{_encoded(orjson.dumps(header))}.{_encoded(orjson.dumps(claims))}"
    return f"{content}.{_encoded(sign_octets(content.encode(), private_key=signer.private_key))}"


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
