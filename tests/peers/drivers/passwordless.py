"""Requests codes and links with auth0-python and logs in with them.

A run of the program does one step, because the test reads the code from the message between two steps.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from auth0.authentication import GetToken, Passwordless  # type: ignore[import-untyped]  # not installed where types are checked
from auth0.authentication.exceptions import Auth0Error, RateLimitError  # type: ignore[import-untyped]  # as above

given = json.loads(Path(sys.argv[1]).read_text())
proof: dict[str, Any] = {"client_id": given["client"], "client_secret": given["secret"]}


def told(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or the text of its error."""
    try:
        return call()
    except RateLimitError as error:
        return ["too many", error.status_code, error.error_code, error.reset_at > 0]
    except Auth0Error as error:
        return [error.status_code, error.error_code, error.message]


def asked() -> dict[str, Any]:
    door = Passwordless(given["domain"], **proof)
    stranger = Passwordless(given["domain"], "unknown-client", client_secret="a secret")
    seen = {
        "mailed code": told(lambda: door.email(given["email"], send="code")),
        "mailed link": told(lambda: door.email(given["linked"], auth_params={"redirect_uri": given["callback"], "scope": "openid"})),
        "texted code": told(lambda: door.sms(given["number"])),
        "invalid address": told(lambda: door.email("no address", send="code")),
        "invalid number": told(lambda: door.sms("5550100")),
        "unknown way of sending": told(lambda: door.email(given["email"], send="pigeon")),
        "invalid parameters": told(lambda: door.email(given["email"], auth_params={"redirect_uri": "https://evil.example/"})),
        "unknown client": told(lambda: stranger.email(given["email"], send="code")),
    }
    seen["flood"] = [told(lambda: door.email(given["flooded"], send="code")) for _ in range(6)][-1]
    return seen


def logged_in() -> dict[str, Any]:
    tokens = GetToken(given["domain"], **proof)

    def login(username: str, otp: str, realm: str) -> Any:
        answer = told(lambda: tokens.passwordless_login(username, otp, realm, "openid profile email", given["audience"]))
        return sorted(answer) if isinstance(answer, dict) else answer

    return {
        "wrong": login(given["email"], given["wrong"], "email"),
        "wrong number": login(given["number"], given["wrong"], "sms"),
        "by mail": login(given["email"], given["mailed"], "email"),
        "again": login(given["email"], given["mailed"], "email"),
        "by text": login(given["number"], given["texted"], "sms"),
        "unknown realm": login(given["email"], given["mailed"], "nowhere"),
    }


sys.stdout.write(json.dumps({"ask": asked, "log in": logged_in}[given["step"]]()))
