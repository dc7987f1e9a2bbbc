"""The transport of messages by a browser: in a URL with a separate signature, or in an HTML form (SAML Bindings 2.0, 3.4 and 3.5). Pure."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote_plus, unquote_plus, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from authapi.xml.algorithms import RSA_SHA256, SHA256
from authapi.xml.failures import SignatureMissing, XmlError, XmlMalformed
from authapi.xml.parsing import Element, deflated, from_base64, inflated, serialized
from authapi.xml.signing import sign_octets, signed
from authapi.xml.verifying import verify_octets

REQUEST, RESPONSE = "SAMLRequest", "SAMLResponse"
HTTP_POST = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
HTTP_REDIRECT = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"


@dataclass(frozen=True)
class Signer:
    """The key of a tenant, its certificate, and the algorithms that the partner requires."""

    private_key: RSAPrivateKey = field(repr=False)
    certificate: x509.Certificate
    signature: str = RSA_SHA256
    digest: str = SHA256

    def signed(self, message: Element, *, place: int | None = 1, id_attribute: str = "ID") -> Element:
        """Return a signed copy of the message. In SAML 2.0, the signature follows the Issuer."""
        return signed(
            message,
            private_key=self.private_key,
            certificate=self.certificate,
            place=place,
            id_attribute=id_attribute,
            signature=self.signature,
            digest=self.digest,
        )


def posted_fields(parameter: str, message: Element, relay_state: str | None, signer: Signer | None = None) -> dict[str, str]:
    """Return the fields of an HTML form with a message. If there is a signer, the message is signed."""
    sent = message if signer is None else signer.signed(message)
    encoded = base64.b64encode(serialized(sent)).decode()
    return {parameter: encoded, **({"RelayState": relay_state} if relay_state else {})}


def redirect_address(address: str, parameter: str, message: Element, relay_state: str | None, signer: Signer | None = None) -> str:
    """Return the URL that contains a message. The signature covers the parameters in their encoded form (3.4.4.1)."""
    encoded = base64.b64encode(deflated(serialized(message))).decode()
    query = f"{parameter}={quote_plus(encoded)}"
    if relay_state:
        query += f"&RelayState={quote_plus(relay_state)}"
    if signer is not None:
        query += f"&SigAlg={quote_plus(signer.signature)}"
        signature = sign_octets(query.encode(), private_key=signer.private_key, algorithm=signer.signature)
        query += f"&Signature={quote_plus(base64.b64encode(signature).decode())}"
    return f"{address}{'&' if urlsplit(address).query else '?'}{query}"


def redirected_message(text: str) -> bytes:
    """Return the bytes of a message from a URL. Most senders compress and encode the message; some only encode it. Raises `XmlError`."""
    return _opened(from_base64(text))


def posted_message(text: str) -> bytes:
    """Return the bytes of a message from an HTML form. The message is encoded; some senders also compress it. Raises `XmlError`."""
    return _opened(from_base64(text))


def _opened(raw: bytes) -> bytes:
    if raw.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"<":
        return inflated(raw)
    try:
        # Try this even if the first byte is "<": the compressed form of a long message can begin with this byte.
        return inflated(raw)
    except XmlError:
        return raw


def is_query_signed(query: str) -> bool:
    """Tell whether a query of a URL has a signature for its message, valid or not."""
    return "Signature" in _written(query)


def verify_query(query: str, parameter: str, certificates: Sequence[x509.Certificate], *, allow_sha1: bool = False) -> None:
    """Verify the signature of a message in a URL, over the query as it was sent.

    Raises `SignatureMissing`, `AlgorithmRefused`, `SignatureInvalid` and `XmlMalformed`.
    """
    written = _written(query)
    if "Signature" not in written or "SigAlg" not in written:
        raise SignatureMissing
    octets = "&".join(f"{name}={written[name]}" for name in (parameter, "RelayState", "SigAlg") if name in written).encode()
    signature = from_base64(unquote_plus(written["Signature"]))
    verify_octets(octets, signature, unquote_plus(written["SigAlg"]), certificates, allow_sha1=allow_sha1)


def _written(query: str) -> dict[str, str]:
    """Return the parameters in their encoded form. Refuses a repeated parameter, which two parsers could read differently."""
    found: dict[str, str] = {}
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        # The names of parameters may be escaped. Decode them before the comparison, because the check of the signature finds only the plain
        # names.
        name = unquote_plus(name)
        if name in found:
            raise XmlMalformed(f"The parameter {name[:40]} is repeated.")
        found[name] = value
    return found
