"""How our messages travel through a browser: in an address with a signature beside it, or in a form (SAML Bindings 2.0, 3.4 and 3.5). Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote_plus, unquote_plus, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from authapi.login.protocol import BrowserCall
from authapi.upstream.saml.certificates import Certificate
from authapi.upstream.saml.provider import Endpoint
from authapi.xml.algorithms import DIGEST_NAMES, SIGNATURE_NAMES
from authapi.xml.failures import SignatureMissing, XmlMalformed
from authapi.xml.parsing import Element, deflated, from_base64, inflated, serialized
from authapi.xml.signing import sign_octets, signed
from authapi.xml.verifying import verify_octets

REQUEST, RESPONSE = "SAMLRequest", "SAMLResponse"


@dataclass(frozen=True)
class Signer:
    """The key of the tenant, or the connection's own, with the algorithms that the connection asks for."""

    private_key: RSAPrivateKey = field(repr=False)
    certificate: x509.Certificate
    signature: str = "rsa-sha256"
    digest: str = "sha256"


def call_of(endpoint: Endpoint, parameter: str, message: Element, relay_state: str, signer: Signer | None) -> BrowserCall:
    """Return where the browser goes with a message, signed where there is a signer."""
    if endpoint.is_posted:
        return BrowserCall(endpoint.address, _fields(parameter, message, relay_state, signer))
    return BrowserCall(_address(endpoint.address, parameter, message, relay_state, signer))


def _fields(parameter: str, message: Element, relay_state: str, signer: Signer | None) -> dict[str, str]:
    if signer is not None:
        message = signed(
            message,
            private_key=signer.private_key,
            certificate=signer.certificate,
            # The schema has it behind the Issuer.
            place=1,
            signature=SIGNATURE_NAMES[signer.signature],
            digest=DIGEST_NAMES[signer.digest],
        )
    encoded = base64.b64encode(serialized(message)).decode()
    return {parameter: encoded, **({"RelayState": relay_state} if relay_state else {})}


def _address(address: str, parameter: str, message: Element, relay_state: str, signer: Signer | None) -> str:
    """Return the address with the message. The signature is over the parameters as they are written (Bindings, 3.4.4.1)."""
    encoded = base64.b64encode(deflated(serialized(message))).decode()
    query = f"{parameter}={quote_plus(encoded)}"
    if relay_state:
        query += f"&RelayState={quote_plus(relay_state)}"
    if signer is not None:
        algorithm = SIGNATURE_NAMES[signer.signature]
        query += f"&SigAlg={quote_plus(algorithm)}"
        signature = sign_octets(query.encode(), private_key=signer.private_key, algorithm=algorithm)
        query += f"&Signature={quote_plus(base64.b64encode(signature).decode())}"
    return f"{address}{'&' if urlsplit(address).query else '?'}{query}"


def read_address(parameters: Mapping[str, str], parameter: str) -> bytes:
    """Return the bytes of a message that came by redirect. Raises `XmlError`."""
    return inflated(from_base64(parameters.get(parameter, "")))


def verify_address(query: str, parameter: str, certificates: Sequence[Certificate]) -> None:
    """Verify the signature of a message that came by redirect, over the query as it was sent. Raises `XmlError`."""
    raw = _raw_parameters(query)
    if "Signature" not in raw or "SigAlg" not in raw:
        raise SignatureMissing
    signed_names = [name for name in (parameter, "RelayState", "SigAlg") if name in raw]
    octets = "&".join(f"{name}={raw[name]}" for name in signed_names).encode()
    verify_octets(octets, from_base64(unquote_plus(raw["Signature"])), unquote_plus(raw["SigAlg"]), [one.parsed for one in certificates])


def _raw_parameters(query: str) -> dict[str, str]:
    """Return the parameters as they are written; one that is repeated could be read in two ways."""
    found: dict[str, str] = {}
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if name in found:
            raise XmlMalformed(f"The parameter {name[:40]} is repeated.")
        found[name] = value
    return found


