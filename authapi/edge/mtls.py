"""Mutual TLS through an edge: the TLS proxy of a tenant's host, which forwards client certificates in headers (RFC 8705).

The edge key of a host is a secret that its edge sends in a header of each request. If a request does not contain this key, its edge headers
are untrusted, and are removed before any other code reads the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from django.utils import timezone

from authapi.edge.certificates import MAX_CERTIFICATE_BYTES, MalformedCertificate, ReadCertificate, read_certificate
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.models import EdgeKey
from authapi.token_request import TokenRequest
from foundation.memory.ttl_cache import Remembered
from foundation.secrets import vault
from identity.hosts import HostMatch, scheme

KEY_HEADER = "cname-api-key"
CERTIFICATE_HEADER = "client-certificate"
VERIFIED_HEADER = "client-certificate-ca-verified"
HEADERS = (KEY_HEADER, CERTIFICATE_HEADER, VERIFIED_HEADER)
_CA_VERIFIED = "SUCCESS"
_NOT_CA_VERIFIED = "FAILED"
# The endpoints for which an edge forwards client certificates.
_ALIASED = (
    "token_endpoint", "userinfo_endpoint", "pushed_authorization_request_endpoint", "device_authorization_endpoint",
    "backchannel_authentication_endpoint",
)  # fmt: skip


@dataclass(frozen=True)
class Certificate:
    """The client certificate that the edge received, and whether the edge has verified its issuer."""

    read: ReadCertificate
    is_ca_verified: bool

    @property
    def confirmation(self) -> dict[str, str]:
        """The `cnf` claim that binds a token to the certificate (RFC 8705, 3.1)."""
        return {"x5t#S256": self.read.thumbprint}

    def confirms(self, confirmation: dict[str, Any]) -> bool:
        """Tell whether a token with this `cnf` claim is bound to this certificate."""
        return confirmation.get("x5t#S256") == self.read.thumbprint


def _load_edge_key(key: tuple[str, str]) -> str:
    tenant_id, host = key
    found = EdgeKey.objects.of(tenant_id).filter(domain__host=host, domain__verified_at__isnull=False)
    return found.values_list("digest", flat=True).first() or ""


# The key of an entry is the tenant and the host. The value is the digest of the edge key, empty if the host has no edge key.
edge_keys: Remembered[tuple[str, str], str] = Remembered(_load_edge_key, seconds=1.0)


def without_untrusted(headers: dict[str, str], pairs: Iterable[tuple[bytes, bytes]], host: HostMatch) -> dict[str, str]:
    """Return the headers. If the request does not contain the key of this host's edge, all edge headers are removed.

    `pairs` are the headers as they arrived. A repeated edge header is ambiguous, so it is not trusted.
    """
    present = [name for name in HEADERS if name in headers]
    if not present:
        return headers
    names = [name.lower() for name, _ in pairs]
    is_single = all(names.count(name.encode()) == 1 for name in present)
    if is_single and _is_vouched(headers.get(KEY_HEADER, ""), host):
        return headers
    return {name: value for name, value in headers.items() if name not in HEADERS}


def certificate_of(request: TokenRequest) -> Certificate | None:
    """Return the certificate of the client. None if the edge of the host has forwarded no certificate.

    Checks the edge key again, so that forged headers are not trusted even if the caller has not removed them. Raises `RequestRefused` for
    a certificate that cannot be parsed or is not valid now.
    """
    sent = request.headers.get(CERTIFICATE_HEADER, "")
    status, _, _reason = request.headers.get(VERIFIED_HEADER, "").partition(":")
    if not sent or status not in (_CA_VERIFIED, _NOT_CA_VERIFIED) or not _is_vouched(request.headers.get(KEY_HEADER, ""), request.host):
        return None
    read = _read(sent)
    if not read.is_valid_at(timezone.now()):
        raise RequestRefused(OAuthCase.CERTIFICATE_NOT_VALID)
    return Certificate(read, is_ca_verified=status == _CA_VERIFIED)


def discovery_members(host: HostMatch, endpoints: Mapping[str, Any]) -> dict[str, Any]:
    """Return the discovery members for mutual TLS. Empty if the host has no edge (RFC 8705, 5).

    `endpoints` are the URLs of the host by their names in discovery.
    """
    if not edge_keys.get((host.tenant_id, host.host)):
        return {}
    base = f"{scheme()}://mtls.{host.authority}/"
    return {
        "tls_client_certificate_bound_access_tokens": True,
        "mtls_endpoint_aliases": {name: base + endpoints[name].removeprefix(host.issuer) for name in _ALIASED if name in endpoints},
    }


def _is_vouched(key: str, host: HostMatch) -> bool:
    # The keys are compared in constant time, even if the host has no key.
    return vault.digest_matches(key, edge_keys.get((host.tenant_id, host.host)))


def _read(sent: str) -> ReadCertificate:
    if len(sent) > MAX_CERTIFICATE_BYTES:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The client certificate is longer than {MAX_CERTIFICATE_BYTES} bytes.")
    try:
        return read_certificate(unquote(sent, errors="strict"))
    except ValueError as error:
        reason = str(error) if isinstance(error, MalformedCertificate) else MalformedCertificate.__doc__
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"client-certificate: {reason}") from error
