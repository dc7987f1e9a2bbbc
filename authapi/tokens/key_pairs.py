"""Makes key pairs: with a JWK that is published for tokens, or with a certificate for SAML. Pure: the time is an argument."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from joserfc.jwk import RSAKey

KEY_BITS = 2048
_CERTIFICATE_LIFE = timedelta(days=3650)


@dataclass(frozen=True)
class KeyPair:
    """A new key pair: its id, its public JWK, and the private key, which `repr` omits."""

    kid: str
    public_jwk: dict[str, Any]
    private_pem: str

    def __repr__(self) -> str:
        return f"KeyPair(kid={self.kid!r})"


@dataclass(frozen=True)
class CertifiedKey:
    """A new key pair with its self-signed certificate in PEM; `repr` omits the private key."""

    certificate_pem: str
    private_pem: str
    fingerprint: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"CertifiedKey(fingerprint={self.fingerprint!r})"


def new_certified_key(*, subject: str, now: datetime) -> CertifiedKey:
    """Make a key pair with a self-signed certificate for `subject`."""
    private = generate_private_key()
    pem = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    der = _self_signed(private, subject=subject, now=now)
    certificate = x509.load_der_x509_certificate(der)
    return CertifiedKey(
        certificate_pem=certificate.public_bytes(serialization.Encoding.PEM).decode(),
        private_pem=pem.decode(),
        fingerprint=hashlib.sha256(der).hexdigest(),
        expires_at=certificate.not_valid_after_utc,
    )


def new_key_pair(*, subject: str, now: datetime) -> KeyPair:
    """Make a key pair with a self-signed certificate for `subject`. Some clients read the certificate in the JWK instead of `n` and `e`."""
    private = generate_private_key()
    pem = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    certificate = _self_signed(private, subject=subject, now=now)
    numbers = RSAKey.import_key(private.public_key())
    # RFC 7638 thumbprint, shortened to the 21 characters that clients of the management interface expect.
    kid = numbers.thumbprint()[:21]
    jwk = {
        "alg": "RS256",
        "kty": "RSA",
        "use": "sig",
        "n": numbers.as_dict()["n"],
        "e": numbers.as_dict()["e"],
        "kid": kid,
        # RFC 7517, 4.8: SHA-1 is the definition of this thumbprint, not a choice.
        "x5t": _base64url(hashlib.sha1(certificate, usedforsecurity=False).digest()),
        "x5c": [base64.b64encode(certificate).decode()],
    }
    return KeyPair(kid=kid, public_jwk=jwk, private_pem=pem.decode())


def generate_private_key() -> rsa.RSAPrivateKey:
    """Return a new private key. Generation takes about 50 ms on average, and sometimes many times as long."""
    return rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)


def _self_signed(private: rsa.RSAPrivateKey, *, subject: str, now: datetime) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject[:64])])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _CERTIFICATE_LIFE)
        .sign(private, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.DER)


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
