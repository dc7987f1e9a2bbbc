"""What tokens are bound to: the key of a DPoP proof (RFC 9449, 6) or the client certificate of the request (RFC 8705, 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from authapi.compliance.enforcing import check
from authapi.compliance.levels import NONE
from authapi.compliance.rules import Stage, TokenFacts
from authapi.edge.mtls import CERTIFICATE_HEADER, certificate_of
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.models import ApiResource, Client
from authapi.token_request import TokenRequest

KEY, CERTIFICATE = "jkt", "x5t#S256"
# The name of each mechanism on the wire, and its member of `cnf`.
MECHANISMS = {"dpop": KEY, "mtls": CERTIFICATE}
_SENTENCES = {
    KEY: "Tokens for this API must be bound to a key: send a DPoP proof with the token request.",
    CERTIFICATE: "Tokens for this API must be bound to a certificate: send a client certificate with the token request, and no DPoP proof.",
}
_EITHER = "Tokens of this client must be bound: send a DPoP proof or a client certificate with the token request."

Confirmation = Mapping[str, Any]


def binding(request: TokenRequest) -> Confirmation | None:
    """Return the `cnf` of the issued tokens: the key of the DPoP proof if the request has one, otherwise its client certificate."""
    if request.key:
        return {KEY: request.key}
    if CERTIFICATE_HEADER not in request.headers:
        return None
    certificate = certificate_of(request)
    return certificate.confirmation if certificate is not None else None


def bound_to(confirmation: Confirmation | None, *, client: Client, resource: ApiResource | None) -> Confirmation | None:
    """Return the `cnf` of an access token for this API; None for an unbound token. Raises `RequestRefused` for a missing binding."""
    asked = resource.settings.get("proof_of_possession") if resource is not None else None
    is_required = client.settings.get("require_proof_of_possession")
    level = client.settings.get("compliance_level") or NONE
    if not (confirmation or asked or is_required or level != NONE):
        return None
    if confirmation and resource is not None and resource.is_system and not (is_required or asked or level != NONE):
        # No setting requires a binding for the management interface. So bind the token to a key only, not to a certificate: a TLS proxy
        # (edge) may forward client certificates to the token endpoint and not to the management interface, and the client then could not
        # use a token that is bound to its certificate. A DPoP proof reaches every interface.
        confirmation = {KEY: confirmation[KEY]} if KEY in confirmation else None
    if asked and _is_required(asked, client) and MECHANISMS[asked["mechanism"]] not in (confirmation or ()):
        raise RequestRefused(OAuthCase.POSSESSION_REQUIRED, reason=_SENTENCES[MECHANISMS[asked["mechanism"]]])
    if is_required and not confirmation:
        raise RequestRefused(OAuthCase.POSSESSION_REQUIRED, reason=_EITHER)
    if level != NONE:
        algorithm = (resource.settings.get("signing_alg") or "") if resource is not None else ""
        check(level, Stage.TOKEN, TokenFacts(confirmation or {}, algorithm))
    return confirmation


def token_type(confirmation: Confirmation | None) -> str:
    """Return the `token_type` of the answer. A token that is bound to a certificate is a Bearer token (RFC 8705, 3)."""
    return "DPoP" if confirmation and KEY in confirmation else "Bearer"


def _is_required(asked: Mapping[str, Any], client: Client) -> bool:
    return bool(asked.get("required")) and (asked.get("required_for") != "public_clients" or client.is_public)
