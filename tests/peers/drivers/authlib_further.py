"""Pushed and signed requests, devices, token exchange, introspection and registration with unmodified Authlib over TLS.

Prints one JSON object. Usage: python authlib_further.py FILE. FILE has the same content as for `openid_client_further.mjs`. The environment
variable REQUESTS_CA_BUNDLE names the file of the certificate authority. Authlib 1.9 does not support DPoP.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from hosted_pages import log_in  # type: ignore[import-not-found]  # beside this program
from joserfc import jwt
from joserfc.jwk import RSAKey

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
given: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
metadata: dict[str, Any] = requests.get(f"{given['issuer']}.well-known/openid-configuration", timeout=20).json()
seen: dict[str, Any] = {}


def session(kind: str) -> OAuth2Session:
    known = given["clients"][kind]
    if isinstance(known, str):
        return OAuth2Session(known, token_endpoint_auth_method="none", scope="openid email")
    method = {"token_endpoint_auth_method": "client_secret_post", "code_challenge_method": "S256"}
    return OAuth2Session(known["id"], known["secret"], redirect_uri=given["callback"], scope="openid email read:things", **method)


def refusal(call: Any) -> str:
    try:
        call()
    except OAuthError as error:
        return str(error.error)
    return "not refused"


def with_pushed(*, signed: bool, reuses: bool = True) -> list[Any]:
    """Push an authorization request and log in with it. If `reuses` is true, exchange the code twice: the second use revokes the tokens."""
    one, verifier = session("web"), generate_token(48)
    address, state = one.create_authorization_url("https://unused.example.test/", audience=given["audience"], code_verifier=verifier)
    asked: dict[str, Any] = dict(parse_qsl(address.partition("?")[2]))
    if signed:
        now, me = int(time.time()), given["clients"]["web"]["id"]
        claims = {**asked, "iss": me, "aud": given["issuer"], "nbf": now, "exp": now + 120}
        key = RSAKey.import_key(given["clients"]["web"]["requestKey"])
        asked = {"request": jwt.encode({"alg": "PS256"}, claims, key, algorithms=["PS256"])}
    # The client authentication adds the client id to the request.
    asked.pop("client_id", None)
    method = one.client_auth("client_secret_post")
    pushed = requests.post(metadata["pushed_authorization_request_endpoint"], data=asked, auth=method, timeout=20)
    assert pushed.status_code == 201, pushed.text
    query = urlencode({"client_id": given["clients"]["web"]["id"], "request_uri": pushed.json()["request_uri"]})
    reached = log_in(f"{metadata['authorization_endpoint']}?{query}", given)
    answer = {"authorization_response": reached, "state": state, "code_verifier": verifier}
    token = one.fetch_token(metadata["token_endpoint"], **answer)
    if not reuses:
        return [token["access_token"]]
    profile = one.get(metadata["userinfo_endpoint"]).json()
    return [profile["email"], refusal(lambda: one.fetch_token(metadata["token_endpoint"], **answer))]


seen["pushed"] = with_pushed(signed=False)
seen["signed and pushed"] = with_pushed(signed=True)

# A device requests codes, and its user answers in a browser.
device = session("device")
asked_for = {"client_id": given["clients"]["device"], "scope": "openid email"}
started: dict[str, Any] = requests.post(metadata["device_authorization_endpoint"], data=asked_for, timeout=20).json()
poll = {"grant_type": DEVICE, "device_code": started["device_code"]}
seen["device before the answer"] = refusal(lambda: device.fetch_token(metadata["token_endpoint"], **poll))
log_in(started["verification_uri_complete"], {**given, "callback": given["activated"]})
time.sleep(started["interval"])
seen["device"] = "id_token" in device.fetch_token(metadata["token_endpoint"], **poll)

# An API exchanges the token that it has received, and introspects the token.
api, subject = session("api"), with_pushed(signed=False, reuses=False)[0]
parameters = {"grant_type": EXCHANGE, "subject_token": subject, "subject_token_type": ACCESS_TOKEN, "audience": given["next"]}
seen["exchange"] = api.fetch_token(metadata["token_endpoint"], **parameters)["issued_token_type"] == ACCESS_TOKEN
told = api.introspect_token(metadata["introspection_endpoint"], token=subject).json()
seen["introspection"] = [told["active"], told["client_id"] == given["clients"]["web"]["id"]]

# A client registers itself, reads its registration and deletes it.
body = {"redirect_uris": [given["callback"]], "client_name": "Registered"}
made = requests.post(metadata["registration_endpoint"], json=body, timeout=20).json()
proof = {"Authorization": f"Bearer {made['registration_access_token']}"}
read = requests.get(made["registration_client_uri"], headers=proof, timeout=20).json()
deleted = requests.delete(made["registration_client_uri"], headers=proof, timeout=20).status_code
seen["registered"] = [read["client_id"] == made["client_id"], deleted]
json.dump(seen, sys.stdout)
