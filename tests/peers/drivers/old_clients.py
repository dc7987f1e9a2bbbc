"""Calls endpoints that only old clients use, with auth0-python. Prints the response, or the code and the text of the error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from auth0.authentication import Database, Delegated, GetToken, Social  # type: ignore[import-untyped]  # not installed where types are checked
from auth0.authentication.exceptions import Auth0Error  # type: ignore[import-untyped]  # as above

given = json.loads(Path(sys.argv[1]).read_text())
domain, client, user = given["domain"], given["client"], given["user"]
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def told(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Auth0Error as error:
        return [error.status_code, error.error_code, error.message]


tokens = GetToken(domain, client).login(user["email"], user["password"], scope="openid", realm=user["connection"])
delegated = Delegated(domain, client)
seen = {
    "delegated": sorted(told(lambda: delegated.get_token(given["target"], "app", JWT_BEARER, id_token=tokens["id_token"]))),
    "delegated elsewhere": told(lambda: delegated.get_token("nobody", "app", JWT_BEARER, id_token=tokens["id_token"])),
    "social": told(lambda: Social(domain, client).login("a-token", "nowhere")),
    "signed up": sorted(told(lambda: Database(domain, client).signup("new@example.test", user["password"], user["connection"]))),
}
sys.stdout.write(json.dumps(seen))
