"""Code flows with unmodified pyoidc and idpyoidc over TLS. Prints the results of each library as one JSON object.

Usage: python strict_clients.py FILE. FILE has the same content as for `openid_client.mjs`. The environment variable REQUESTS_CA_BUNDLE
names the file of the certificate authority.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from hosted_pages import log_in  # type: ignore[import-not-found]  # beside this program
from idpyoidc.client.rp_handler import RPHandler  # type: ignore[import-not-found]  # not installed where types are checked
from oic.oic import Client  # type: ignore[import-not-found]
from oic.oic.message import AuthorizationResponse, RegistrationResponse  # type: ignore[import-not-found]
from oic.utils.authn.client import CLIENT_AUTHN_METHOD  # type: ignore[import-not-found]
from oic.utils.settings import OicClientSettings  # type: ignore[import-not-found]

given: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
AUTHORITY = os.environ["REQUESTS_CA_BUNDLE"]
SCOPE = ["openid", "profile", "email"]


def told(id_token: Any, profile: Any) -> dict[str, Any]:
    names = ("email", "updated_at")
    return {
        "id_token": [id_token[name] for name in names],
        "userinfo": [profile[name] for name in names],
        "sub": id_token["sub"] == profile["sub"],
    }


def by_pyoidc() -> dict[str, Any]:
    registered = given["clients"]["basic"]
    client = Client(client_authn_method=CLIENT_AUTHN_METHOD, settings=OicClientSettings())
    client.provider_config(given["issuer"])
    client.store_registration_info(
        RegistrationResponse(client_id=registered["id"], client_secret=registered["secret"], redirect_uris=[given["callback"]])
    )
    state, nonce = "a-state-of-pyoidc", "a-nonce-of-pyoidc"
    asked = {"response_type": "code", "scope": SCOPE, "state": state, "nonce": nonce, "redirect_uri": given["callback"]}
    request = client.construct_AuthorizationRequest(request_args={"client_id": client.client_id, **asked})
    reached = log_in(request.request(client.authorization_endpoint), given)
    client.parse_response(AuthorizationResponse, info=urlsplit(reached).query, sformat="urlencoded")
    tokens = client.do_access_token_request(
        state=state, request_args={"redirect_uri": given["callback"]}, authn_method="client_secret_basic"
    )
    return told(tokens["id_token"], client.do_user_info_request(state=state))


def by_idpyoidc() -> dict[str, Any]:
    registered = given["clients"]["post"]
    configured = {
        "issuer": given["issuer"],
        "client_type": "oidc",
        "client_id": registered["id"],
        "client_secret": registered["secret"],
        "redirect_uris": [given["callback"]],
        "token_endpoint_auth_methods_supported": ["client_secret_post"],
        "client_authn_methods": {
            "client_secret_post": "idpyoidc.client.client_auth.ClientSecretPost",
            "bearer_header": "idpyoidc.client.client_auth.BearerHeader",
        },
        "response_types_supported": ["code"],
        "scopes_supported": SCOPE,
        "httpc_params": {"verify": AUTHORITY},
    }
    handler = RPHandler(base_url=given["callback"], client_configs={"service": configured}, httpc_params={"verify": AUTHORITY})
    begun = handler.begin("service")
    reached = log_in(begun if isinstance(begun, str) else begun["url"], given)
    ended = handler.finalize(given["issuer"], dict(parse_qsl(urlsplit(reached).query)))
    if "error" in ended:
        raise AssertionError(ended)
    return told(ended["id_token"], ended["userinfo"])


json.dump({"pyoidc": by_pyoidc(), "idpyoidc": by_idpyoidc()}, sys.stdout)
