"""A SAML provider for tests that change its responses. Other tests use real providers."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from authapi.upstream.saml.certificates import Certificate, certificate_of
from authapi.upstream.saml.facts import BEARER, wire_instant
from authapi.upstream.saml.statuses import SUCCESS
from authapi.xml.building import element
from authapi.xml.certificates import base64_of
from authapi.xml.encryption import encrypted
from authapi.xml.names import DS, METADATA, SAML, SAMLP, qualified
from authapi.xml.parsing import Element, serialized
from authapi.xml.signing import signed
from tests.composed_keys import composed_private_key

ENTITY_ID = "https://idp.example.test/metadata"
SIGN_IN = "https://idp.example.test/sso"
SIGN_OUT = "https://idp.example.test/slo"
REDIRECT = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
POST = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
_XMLSOAP = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"


@dataclass(frozen=True)
class KeyPair:
    private: rsa.RSAPrivateKey
    certificate: x509.Certificate

    @property
    def known(self) -> Certificate:
        """Return the certificate as the options of a connection contain it."""
        return certificate_of(self.certificate.public_bytes(Encoding.DER))

    @property
    def text(self) -> str:
        return base64_of(self.certificate)


_COMPOSED_BITS = 2048


def key_pair(name: str = "idp.example.test", *, bits: int = 2048, days: int = 365) -> KeyPair:
    key = composed_private_key() if bits == _COMPOSED_BITS else rsa.generate_private_key(public_exponent=65537, key_size=bits)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=400))
    return KeyPair(key, builder.not_valid_after(now + timedelta(days=days)).sign(key, hashes.SHA256()))


SIGNING = key_pair()
OTHER = key_pair("other.example.test")


def _saml(name: str) -> str:
    return qualified(SAML, name)


def _samlp(name: str) -> str:
    return qualified(SAMLP, name)


@dataclass
class Answer:
    """A valid response. Tests change its members, or its XML trees before they are signed."""

    audience: str
    recipient: str
    in_response_to: str | None = None
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    issuer: str | None = ENTITY_ID
    response_issuer: str | None = ENTITY_ID
    destination: str | None = ""
    name_id: str | None = "248289"
    name_id_format: str = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
    session_index: str = "_session-1"
    attributes: Mapping[str, list[str]] = field(
        default_factory=lambda: {f"{_XMLSOAP}emailaddress": ["ada@corp.example.test"], "displayName": ["Ada Lovelace"]}
    )
    statuses: tuple[str, ...] = (SUCCESS,)
    status_message: str | None = None
    lifetime: timedelta = timedelta(minutes=5)
    method: str = BEARER
    signs_assertion: bool = True
    signs_response: bool = False
    key: KeyPair = SIGNING
    encrypts_for: x509.Certificate | None = None
    signature: str = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
    digest: str = "http://www.w3.org/2001/04/xmlenc#sha256"
    assertion_id: str = ""
    # Functions that change the assertion, or the response around it, before the signature.
    spoil_assertion: Callable[[Element], None] | None = None
    spoil_response: Callable[[Element], None] | None = None

    def assertion(self) -> Element:
        ends = wire_instant(self.now + self.lifetime)
        confirmation = {"Recipient": self.recipient or None, "NotOnOrAfter": ends, "InResponseTo": self.in_response_to}
        name = None if self.name_id is None else element(_saml("NameID"), {"Format": self.name_id_format}, self.name_id)
        made = element(
            _saml("Assertion"),
            {"ID": self.assertion_id or f"_{secrets.token_hex(16)}", "Version": "2.0", "IssueInstant": wire_instant(self.now)},
            None if self.issuer is None else element(_saml("Issuer"), None, self.issuer),
            element(
                _saml("Subject"),
                None,
                name,
                element(_saml("SubjectConfirmation"), {"Method": self.method}, element(_saml("SubjectConfirmationData"), confirmation)),
            ),
            element(
                _saml("Conditions"),
                {"NotBefore": wire_instant(self.now - timedelta(seconds=30)), "NotOnOrAfter": ends},
                element(_saml("AudienceRestriction"), None, element(_saml("Audience"), None, self.audience)) if self.audience else None,
            ),
            element(
                _saml("AuthnStatement"),
                {"AuthnInstant": wire_instant(self.now), "SessionIndex": self.session_index or None},
                element(
                    _saml("AuthnContext"),
                    None,
                    element(_saml("AuthnContextClassRef"), None, "urn:oasis:names:tc:SAML:2.0:ac:classes:Password"),
                ),
            ),
            self._statement(),
        )
        if self.spoil_assertion is not None:
            self.spoil_assertion(made)
        return self._signed(made) if self.signs_assertion else made

    def _statement(self) -> Element | None:
        if not self.attributes:
            return None
        return element(
            _saml("AttributeStatement"),
            None,
            *(
                element(_saml("Attribute"), {"Name": name}, *(element(_saml("AttributeValue"), None, value) for value in values))
                for name, values in self.attributes.items()
            ),
        )

    def _signed(self, made: Element) -> Element:
        return signed(
            made,
            private_key=self.key.private,
            certificate=self.key.certificate,
            place=0 if self.issuer is None else 1,
            signature=self.signature,
            digest=self.digest,
        )

    def _status(self) -> Element:
        code: Element | None = None
        for name in reversed(self.statuses):
            code = element(_samlp("StatusCode"), {"Value": name}, code)
        message = None if self.status_message is None else element(_samlp("StatusMessage"), None, self.status_message)
        return element(_samlp("Status"), None, code, message)

    def tree(self) -> Element:
        inner: Element | None = self.assertion() if self.statuses[:1] == (SUCCESS,) else None
        if inner is not None and self.encrypts_for is not None:
            inner = element(_saml("EncryptedAssertion"), None, encrypted(inner, certificate=self.encrypts_for))
        made = element(
            _samlp("Response"),
            {
                "ID": f"_{secrets.token_hex(16)}",
                "Version": "2.0",
                "IssueInstant": wire_instant(self.now),
                "Destination": self.recipient if self.destination == "" else self.destination,
                "InResponseTo": self.in_response_to,
            },
            None if self.response_issuer is None else element(_saml("Issuer"), None, self.response_issuer),
            self._status(),
            inner,
        )
        if self.spoil_response is not None:
            self.spoil_response(made)
        return self._signed(made) if self.signs_response else made

    @property
    def raw(self) -> bytes:
        return serialized(self.tree())

    @property
    def encoded(self) -> str:
        return base64.b64encode(self.raw).decode()


def metadata(
    *certificates: str,
    entity_id: str = ENTITY_ID,
    sign_in: Mapping[str, str] | None = None,
    sign_out: Mapping[str, str] | None = None,
    attributes: Mapping[str, str] | None = None,
    role: Mapping[str, str] | None = None,
) -> bytes:
    """Return the metadata document of a provider."""

    def md(name: str) -> str:
        return qualified(METADATA, name)

    keys = []
    for text in certificates or (SIGNING.text,):
        data = element(qualified(DS, "X509Data"), None, element(qualified(DS, "X509Certificate"), None, text))
        keys.append(element(md("KeyDescriptor"), {"use": "signing"}, element(qualified(DS, "KeyInfo"), None, data)))
    places = [
        *(
            ("SingleLogoutService", binding, address)
            for binding, address in ({REDIRECT: SIGN_OUT} if sign_out is None else sign_out).items()
        ),
        *(("SingleSignOnService", binding, address) for binding, address in ({REDIRECT: SIGN_IN} if sign_in is None else sign_in).items()),
    ]
    descriptor = element(
        md("IDPSSODescriptor"),
        {"protocolSupportEnumeration": SAMLP, **(role or {})},
        *keys,
        *(element(md(name), {"Binding": binding, "Location": address}) for name, binding, address in places),
    )
    return serialized(element(md("EntityDescriptor"), {"entityID": entity_id, **(attributes or {})}, descriptor))
