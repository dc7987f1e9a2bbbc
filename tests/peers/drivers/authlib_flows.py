"""Login flows with unmodified Authlib over TLS. Prints the results as one JSON object.

Usage: python authlib_flows.py FILE. FILE has the same content as for `openid_client.mjs`. The environment variable REQUESTS_CA_BUNDLE names
the file of the certificate authority.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from authlib.oidc.core import CodeIDToken
from hosted_pages import log_in  # type: ignore[import-not-found]  # beside this program
from joserfc import jwt
from joserfc.jwk import KeySet

given: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
metadata: dict[str, Any] = requests.get(f"{given['issuer']}.well-known/openid-configuration", timeout=20).json()
keys = KeySet.import_key_set(requests.get(metadata["jwks_uri"], timeout=20).json())
seen: dict[str, Any] = {}
METHODS = {"public": "none", "post": "client_secret_post", "basic": "client_secret_basic", "assertion": "private_key_jwt"}


class ShortAssertion(PrivateKeyJWT):  # type: ignore[misc]  # Authlib has no types
    """A client authentication whose assertions expire after two minutes. Each assertion has its own `jti`.

    The assertions that Authlib creates by default expire after an hour, and all have the same `jti` if they contain custom claims.
    """

    def sign(self, auth: Any, token_endpoint: str) -> Any:
        self.claims = {"aud": given["issuer"], "exp": int(time.time()) + 120}
        return super().sign(auth, token_endpoint)


def session(kind: str, **more: Any) -> OAuth2Session:
    client = given["clients"][kind]
    made = OAuth2Session(
        client["id"],
        client.get("key") or client["secret"],
        token_endpoint_auth_method=METHODS[kind],
        redirect_uri=given["callback"],
        code_challenge_method="S256",
        **more,
    )
    made.register_client_auth_method(ShortAssertion())
    return made


def verified(id_token: str, *, client_id: str, nonce: str) -> CodeIDToken:
    decoded = jwt.decode(id_token, keys, algorithms=["RS256"])
    claims = CodeIDToken(decoded.claims, decoded.header, {"iss": {"value": given["issuer"]}, "aud": {"value": client_id}}, {"nonce": nonce})
    claims.validate(leeway=10)
    return claims


def refusal(call: Any) -> str:
    try:
        call()
    except OAuthError as error:
        return str(error.error)
    return "not refused"


for kind in ("public", "post", "basic", "assertion"):
    nonce, verifier = generate_token(30), generate_token(48)
    one = session(kind, scope="openid profile email offline_access read:things")
    address, state = one.create_authorization_url(
        metadata["authorization_endpoint"], nonce=nonce, audience=given["audience"], code_verifier=verifier
    )
    reached = log_in(address, given)
    assert parse_qs(urlsplit(reached).query)["iss"] == [given["issuer"]]
    token = one.fetch_token(metadata["token_endpoint"], authorization_response=reached, state=state, code_verifier=verifier)
    claims = verified(token["id_token"], client_id=given["clients"][kind]["id"], nonce=nonce)
    profile = one.get(metadata["userinfo_endpoint"]).json()
    first = token["refresh_token"]
    second = one.refresh_token(metadata["token_endpoint"], refresh_token=first)
    again = refusal(lambda one=one, first=first: one.refresh_token(metadata["token_endpoint"], refresh_token=first))
    seen[kind] = [claims["email"], profile["email"], second["refresh_token"] != first, again]

for kind in ("post", "basic", "assertion"):
    token = session(kind).fetch_token(metadata["token_endpoint"], grant_type="client_credentials", audience=given["audience"])
    seen[f"client_credentials, {kind}"] = token["token_type"]

person = {"username": given["user"]["email"], "password": given["user"]["password"]}
token = session("post").fetch_token(metadata["token_endpoint"], grant_type="password", scope="openid", audience=given["audience"], **person)
seen["password"] = "id_token" in token
seen["wrong password"] = refusal(
    lambda: session("post").fetch_token(metadata["token_endpoint"], grant_type="password", **person | {"password": "wrong"})
)
json.dump(seen, sys.stdout)
