"""Logs in with auth0-python, first with a password and then with a second factor. The driver computes the codes as an app does."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
import time
from pathlib import Path
from typing import Any

from auth0.authentication import GetToken  # type: ignore[import-untyped]  # not installed where types are checked
from auth0.authentication.exceptions import Auth0Error  # type: ignore[import-untyped]  # as above

_GRANT = "http://auth0.com/oauth/grant-type/"
given = json.loads(Path(sys.argv[1]).read_text())
address = f"http://{given['domain']}"
tokens = GetToken(given["domain"], given["client"], client_secret=given["secret"], protocol="http")


def refused() -> Auth0Error:
    """Log in with only the password, and return the error that the library raises. The service must require the second factor."""
    try:
        tokens.login(username=given["username"], password=given["password"], scope="openid", grant_type="password")
    except Auth0Error as error:
        return error
    raise SystemExit("The password was enough.")


def proven(grant: str, token: str, **proof: str) -> Any:
    body = {"client_id": given["client"], "grant_type": _GRANT + grant, "mfa_token": token, **proof}
    return tokens.authenticated_post(f"{address}/oauth/token", data=body)


def code(*, steps: int = 0) -> str:
    """Return the code that an authenticator app shows now (RFC 6238), or after `steps` periods."""
    moment = (int(time.time()) // 30 + steps).to_bytes(8, "big")
    digest = hmac.new(base64.b32decode(given["totp"]), moment, hashlib.sha1).digest()
    start = digest[-1] & 15
    return f"{(int.from_bytes(digest[start : start + 4], 'big') & 0x7FFFFFFF) % 1_000_000:06d}"


first = refused()
waiting = first.content["mfa_token"]
seen: dict[str, Any] = {
    "password": [first.status_code, first.error_code, [one["type"] for one in first.content["mfa_requirements"]["challenge"]]]
}
listed = tokens.client.get(f"{address}/mfa/authenticators", headers={"Authorization": f"Bearer {waiting}"})
seen["listed"] = [one["authenticator_type"] for one in listed]
body = {"client_id": given["client"], "mfa_token": waiting, "challenge_type": "otp"}
seen["challenge"] = tokens.authenticated_post(f"{address}/mfa/challenge", data=body)
try:
    proven("mfa-otp", waiting, otp="000000" if code() != "000000" else "000001")
except Auth0Error as error:
    seen["wrong code"] = [error.status_code, error.error_code]
seen["code"] = sorted(proven("mfa-otp", waiting, otp=code()))
renewed = proven("mfa-recovery-code", refused().content["mfa_token"], recovery_code=given["recovery_code"])
seen["recovery code"] = renewed["recovery_code"] not in ("", given["recovery_code"])
sys.stdout.write(json.dumps(seen))
