"""The published keys, and the document that says what is served. It lists nothing that does not answer yet."""

from __future__ import annotations

from typing import Any

from authapi.engine import SERVED_GRANTS
from authapi.keys import published_keys
from authapi.views.chain import Answer, Call, hot_endpoint, json_answer

# Short, so that a key published by a rotation is known long before it signs.
_CACHE = {"Cache-Control": "public, max-age=60"}


def discovery_document(issuer: str) -> dict[str, Any]:
    """Return the metadata of OpenID Connect Discovery 1.0 and RFC 8414 for this issuer."""
    return {
        "issuer": issuer,
        "token_endpoint": f"{issuer}oauth/token",
        "jwks_uri": f"{issuer}.well-known/jwks.json",
        "grant_types_supported": list(SERVED_GRANTS),
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        # The three that Discovery 1.0, 3 requires; there is no authorization endpoint yet, hence no response type.
        "response_types_supported": [],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }


def _jwks(call: Call) -> Answer:
    return json_answer({"keys": published_keys(call.host.tenant_id)}, headers=_CACHE)


def _discovery(call: Call) -> Answer:
    return json_answer(discovery_document(call.host.issuer), headers=_CACHE)


jwks = hot_endpoint(_jwks, name="jwks", methods=("GET",))
discovery = hot_endpoint(_discovery, name="discovery", methods=("GET",))
