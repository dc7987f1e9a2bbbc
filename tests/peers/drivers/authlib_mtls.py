"""Certificate-bound flows with unmodified Authlib through an edge that requests certificates. Prints the results as one JSON object.

Usage: python authlib_mtls.py FILE. FILE has the same content as for `openid_client_mtls.mjs`. The environment variable REQUESTS_CA_BUNDLE
names the file of the certificate authority.
"""

from __future__ import annotations

import base64
import json
import socket
import sys
from pathlib import Path
from typing import Any

import requests
from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session
from hosted_pages import log_in  # type: ignore[import-not-found]  # beside this program

given: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
seen: dict[str, Any] = {}
resolve = socket.getaddrinfo


def on_this_machine(host: str, *more: Any, **named: Any) -> Any:
    """Resolve the hosts of the test to this machine, because no name server knows them."""
    return resolve("127.0.0.1" if str(host).endswith(".example.test") else host, *more, **named)


socket.getaddrinfo = on_this_machine  # type: ignore[assignment]
metadata: dict[str, Any] = requests.get(f"{given['issuer']}.well-known/openid-configuration", timeout=20).json()
aliases = metadata["mtls_endpoint_aliases"]


def claims_of(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))))


for kind, known in given["clients"].items():
    # `none` sends only the client id, because the certificate authenticates the client.
    one = OAuth2Session(
        known["id"],
        token_endpoint_auth_method="none",
        redirect_uri=given["callback"],
        scope="openid email offline_access read:things",
        code_challenge_method="S256",
    )
    one.cert = (known["certificate"], known["key"])
    verifier = generate_token(48)
    address, state = one.create_authorization_url(metadata["authorization_endpoint"], audience=given["audience"], code_verifier=verifier)
    token = one.fetch_token(aliases["token_endpoint"], authorization_response=log_in(address, given), state=state, code_verifier=verifier)
    bearer = {"Authorization": f"Bearer {token['access_token']}"}
    profile = requests.get(aliases["userinfo_endpoint"], headers=bearer, cert=one.cert, timeout=20)
    stolen = requests.get(aliases["userinfo_endpoint"], headers=bearer, timeout=20)
    fresh = one.refresh_token(aliases["token_endpoint"], refresh_token=token["refresh_token"])
    seen[kind] = {
        "bound by": list(claims_of(token["access_token"])["cnf"]),
        "profile": profile.json().get("email"),
        "profile without the certificate": stolen.status_code,
        "refreshed": claims_of(fresh["access_token"])["cnf"] == claims_of(token["access_token"])["cnf"],
    }
json.dump(seen, sys.stdout)
