"""Remembers an account in the browser: the last account whose name a user typed there. The next login then asks only for the password.

Decision: docs/adr/0097. The cookie is sealed for its tenant, so a caller cannot forge a cookie to find out whether a name has an account.
The name is shown as the user typed it, and no page checks whether the account still exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import orjson
from django.http import HttpRequest, HttpResponse

from authapi.login.cookies import cookie_name, drop_cookie, set_cookie
from foundation.secrets import vault
from foundation.secrets.vault import SecretUnreadable

REMEMBERED = "account"
_LIFE = timedelta(days=90)
# A sealed name of 254 characters is shorter than this limit in every alphabet. Browsers keep cookies of up to 4096 bytes.
_LONGEST = 2048


@dataclass(frozen=True)
class RememberedAccount:
    """The name that the user typed, and the connection to which it belongs."""

    identifier: str
    connection_id: str


def remembered_account(request: HttpRequest, tenant_id: str) -> RememberedAccount | None:
    """Return the account of this browser; None without a cookie, and for a cookie that this tenant did not seal."""
    value = request.COOKIES.get(cookie_name(REMEMBERED), "")
    if not 0 < len(value) <= _LONGEST:
        return None
    try:
        identifier, connection_id = orjson.loads(vault.unseal(value, place=_place(tenant_id)))
    except (SecretUnreadable, ValueError):
        # The cookie is forged, from another tenant, or sealed with a removed key. The user types the name again.
        return None
    return RememberedAccount(identifier, connection_id)


def remember_account(answer: HttpResponse, tenant_id: str, account: RememberedAccount, *, is_persistent: bool) -> None:
    """Store the account in the browser.

    If sessions of the tenant end when the browser is closed, the browser then drops this cookie, too.
    """
    text = orjson.dumps([account.identifier, account.connection_id]).decode()
    value = vault.seal(text, place=_place(tenant_id))
    if len(value) <= _LONGEST:
        set_cookie(answer, REMEMBERED, value, seconds=int(_LIFE.total_seconds()) if is_persistent else None)


def forget_account(request: HttpRequest, answer: HttpResponse) -> None:
    """Drop the cookie of the remembered account, if there is one."""
    if cookie_name(REMEMBERED) in request.COOKIES:
        drop_cookie(answer, REMEMBERED)


def _place(tenant_id: str) -> str:
    return f"{tenant_id}:cookie:{REMEMBERED}"
