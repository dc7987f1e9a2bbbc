"""`tls_client_auth` and `self_signed_tls_client_auth`: the certificate that the TLS proxy (edge) forwarded (RFC 8705, 2).

A certificate alone does not mean that the client tries to authenticate with it: the certificate may only bind the token. The
certificate authenticates the client only if the request has no other credential and the client is registered for this method.
"""

from __future__ import annotations

import hmac

from authapi.client_auth.credential import Credential
from authapi.edge.certificates import MalformedCertificate, ReadCertificate, read_subject
from authapi.edge.mtls import certificate_of
from authapi.models import ClientCredential
from authapi.token_request import TokenRequest

CA_SIGNED = "tls_client_auth"
SELF_SIGNED = "self_signed_tls_client_auth"


def presented(request: TokenRequest) -> Credential | None:
    """Return the certificate together with the client id that the body contains. Return None if one of the two is missing."""
    certificate, client_id = certificate_of(request), request.text("client_id")
    if certificate is None or client_id is None:
        return None
    return Credential(CA_SIGNED if certificate.is_ca_verified else SELF_SIGNED, client_id, certificate=certificate.read)


def is_registered(credential: ClientCredential, certificate: ReadCertificate) -> bool:
    """Tell whether a registered credential of the client matches this certificate."""
    if credential.type == ClientCredential.Type.X509_CERT:
        # RFC 8705, 2.2: the certificate itself is registered, so its issuer is not checked.
        return hmac.compare_digest(credential.thumbprint, certificate.thumbprint)
    if credential.type != ClientCredential.Type.CERT_SUBJECT_DN or not certificate.subject:
        return False
    try:
        # RFC 8705, 2.1.2. Compare every component, in the order of the certificate.
        return read_subject(credential.subject_dn) == certificate.subject
    except MalformedCertificate:
        return False
