"""Requests an approval elsewhere (CIBA) with auth0-python, and polls the token endpoint.

Prints the response, or the status, the code and the text of the error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from auth0.authentication import GetToken  # type: ignore[import-untyped]  # not installed where types are checked
from auth0.authentication.back_channel_login import BackChannelLogin  # type: ignore[import-untyped]  # as above
from auth0.authentication.exceptions import Auth0Error  # type: ignore[import-untyped]  # as above

given = json.loads(Path(sys.argv[1]).read_text())
domain, client = given["issuer"].removeprefix("https://").rstrip("/"), given["client"]


def told(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Auth0Error as error:
        return [error.status_code, error.error_code, error.message]


def asked(sub: str, **further: Any) -> Any:
    hint = json.dumps({"format": "iss_sub", "iss": given["issuer"], "sub": sub})
    login = BackChannelLogin(domain, client["id"], client_secret=client["secret"])
    return told(lambda: login.back_channel_login(binding_message="21-49-38", login_hint=hint, scope="openid", **further))


begun = asked(given["sub"], requested_expiry=200)
tokens = GetToken(domain, client["id"], client_secret=client["secret"])
seen = {
    "begun": [sorted(begun), begun["expires_in"]],
    "waits": [told(lambda: tokens.backchannel_login(auth_req_id=begun["auth_req_id"])) for _ in range(2)],
    "unknown": asked("auth0|nobody"),
}
sys.stdout.write(json.dumps(seen))
