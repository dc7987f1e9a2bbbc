"""The answer about a registration (RFC 7591, 3.2.1; RFC 7592, 3): all registered metadata, as stored."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from cryptography import x509

from authapi.edge.certificates import read_subject
from authapi.models import Client, ClientCredential
from identity.hosts import HostMatch

PATH = "/oidc/register"


def client_information(client: Client, host: HostMatch, *, token: str, secret: str = "") -> dict[str, Any]:
    """Return the members of an answer. Only the answer to the request that created the secret contains the secret."""
    members: dict[str, Any] = {
        "client_id": client.client_id,
        "client_id_issued_at": int(client.created.timestamp()),
        **({"client_secret": secret, "client_secret_expires_at": 0} if secret else {}),
        "registration_access_token": token,
        "registration_client_uri": f"{host.issuer.rstrip('/')}{PATH}?{urlencode({'client_id': client.client_id})}",
        "client_name": client.name,
        "application_type": "native" if client.app_type == "native" else "web",
        "redirect_uris": client.redirect_uris.split(),
        "grant_types": client.grant_types,
        "response_types": ["code"] if "authorization_code" in client.grant_types else [],
        "token_endpoint_auth_method": str(client.auth_method),
        "id_token_signed_response_alg": client.algorithm or Client.RS256_ALGORITHM,
        "subject_type": "public",
        "require_pushed_authorization_requests": bool(client.settings.get("require_pushed_authorization_requests")),
        "require_signed_request_object": bool((client.settings.get("signed_request_object") or {}).get("required")),
        "dpop_bound_access_tokens": bool(client.settings.get("require_proof_of_possession")),
    }
    optional = {
        "post_logout_redirect_uris": client.post_logout_redirect_uris.split(),
        "logo_uri": client.settings.get("logo_uri"),
        "initiate_login_uri": client.settings.get("initiate_login_uri"),
        "jwks_uri": client.settings.get("jwks_uri"),
        "authorization_details_types": client.settings.get("authorization_details_types"),
        "backchannel_logout_uri": next(iter((client.settings.get("oidc_logout") or {}).get("backchannel_logout_urls") or ()), None),
        "frontchannel_logout_uri": client.settings.get("frontchannel_logout_uri"),
        "frontchannel_logout_session_required": client.settings.get("frontchannel_logout_session_required"),
        **_keys(client),
    }
    return members | {name: value for name, value in optional.items() if value}


def _keys(client: Client) -> dict[str, Any]:
    """Return the keys of the client. Certificates are not returned, because only their thumbprints are stored."""
    rows = list(ClientCredential.objects.of(client.tenant_id).filter(client=client))
    keys = [
        {**(row.public_jwk or {}), "kid": row.kid, "alg": row.algorithm, "use": "sig"}
        for row in rows
        if row.type == ClientCredential.Type.PUBLIC_KEY
    ]
    subject = next((row.subject_dn for row in rows if row.type == ClientCredential.Type.CERT_SUBJECT_DN), "")
    return {"jwks": {"keys": keys} if keys else None, "tls_client_auth_subject_dn": _written(subject) if subject else None}


def _written(lines: str) -> str:
    parts = [x509.NameAttribute(x509.ObjectIdentifier(name), value) for name, value in read_subject(lines)]
    return x509.Name(parts).rfc4514_string()
