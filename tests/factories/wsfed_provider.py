"""A WS-Federation provider such as AD FS, whose every response a test can change."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509

from authapi.protocols.wsfed.metadata import metadata as metadata_document
from authapi.protocols.wsfed.tokens import SAML11_TOKEN, Scope, Subject, assertion, response
from authapi.xml.bindings import Signer
from authapi.xml.building import element
from authapi.xml.encryption import encrypted
from authapi.xml.names import SAML, WST, WST13, qualified
from authapi.xml.parsing import Element, parse, serialized
from tests.factories.saml_provider import SIGNING, Answer, KeyPair

ENTITY_ID = "http://adfs.example.test/adfs/services/trust"
ENDPOINT = "https://adfs.example.test/adfs/ls/"
CLAIMS = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims"


@dataclass
class Token:
    """A valid response. Tests change its members, or change the token before or after it is signed."""

    realm: str
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    issuer: str = ENTITY_ID
    name: str = "CORP\\ada"
    attributes: Mapping[str, list[str]] = field(
        default_factory=lambda: {f"{CLAIMS}/emailaddress": ["ada@corp.example.test"], f"{CLAIMS}/upn": ["ada@corp.example.test"]}
    )
    lifetime: timedelta = timedelta(hours=1)
    key: KeyPair = SIGNING
    signature: str = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
    token_id: str = ""
    is_saml2: bool = False
    is_collection: bool = False
    encrypts_for: x509.Certificate | None = None
    # Changes an assertion of SAML 2.0 before it is signed.
    change: Callable[[Element], None] | None = None
    # Changes the token after it is signed.
    spoil: Callable[[Element], None] | None = None

    def assertion(self) -> Element:
        signer = Signer(self.key.private, self.key.certificate, self.signature)
        if self.is_saml2:
            return Answer(
                audience=self.realm,
                recipient="",
                now=self.now,
                issuer=self.issuer,
                name_id=self.name,
                attributes=self.attributes,
                lifetime=self.lifetime,
                key=self.key,
                assertion_id=self.token_id,
                spoil_assertion=self.change,
            ).assertion()
        subject = Subject(self.name, self.attributes, self.now)
        scope = Scope(self.issuer, self.realm, self.now, self.lifetime)
        return assertion(self.token_id or f"_{secrets.token_hex(16)}", subject, scope, signer)

    def result(self) -> str:
        """Return the `wresult` parameter."""
        token = self.assertion()
        if self.spoil is not None:
            self.spoil(token)
        if self.encrypts_for is not None:
            data = encrypted(token, certificate=self.encrypts_for)
            token = element(qualified(SAML, "EncryptedAssertion"), None, data) if self.is_saml2 else data
        scope = Scope(self.issuer, self.realm, self.now, self.lifetime)
        made = response(token, token_type=SAML11_TOKEN, scope=scope, context=None)
        return self._collected(made) if self.is_collection else made

    @staticmethod
    def _collected(made: str) -> str:
        """Return the response in the format of WS-Trust 1.3."""
        inner = serialized(parse(made.encode())).decode().replace(WST, WST13)
        return f'<c:RequestSecurityTokenResponseCollection xmlns:c="{WST13}">{inner}</c:RequestSecurityTokenResponseCollection>'


def federation_metadata(*keys: KeyPair, entity_id: str = ENTITY_ID, endpoint: str = ENDPOINT) -> bytes:
    """Return the metadata document of a provider."""
    certificates = [key.certificate for key in keys or (SIGNING,)]
    return metadata_document(entity_id=entity_id, endpoint=endpoint, certificates=certificates)
