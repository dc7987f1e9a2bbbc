"""The account that was last logged in to with something typed in this browser, so that the next login asks for the password alone.

Decision: docs/adr/0097. The cookie is sealed for its tenant: no caller can ask about a name of their own choice. The name is shown
as it was typed, and no page looks up whether the account still exists.
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
# A name of 254 characters of any alphabet fits, sealed; browsers keep 4096 bytes.
_LONGEST = 2048


@dataclass(frozen=True)
class RememberedAccount:
    """What was typed to log in, and at which connection that counts."""

    identifier: str
    connection_id: str


def remembered_account(request: HttpRequest, tenant_id: str) -> RememberedAccount | None:
    """Return the account of this browser; None without one, and for a cookie that this tenant did not seal."""
    value = request.COOKIES.get(cookie_name(REMEMBERED), "")
    if not 0 < len(value) <= _LONGEST:
        return None
    try:
        identifier, connection_id = orjson.loads(vault.unseal(value, place=_place(tenant_id)))
    except (SecretUnreadable, ValueError):
        # Forged, of another tenant, or sealed with a key that is gone: the person types the name again.
        return None
    return RememberedAccount(identifier, connection_id)


def remember_account(answer: HttpResponse, tenant_id: str, account: RememberedAccount, *, is_persistent: bool) -> None:
    """Let the browser keep the account; until it is closed where the tenant's sessions end then as well."""
    text = orjson.dumps([account.identifier, account.connection_id]).decode()
    value = vault.seal(text, place=_place(tenant_id))
    if len(value) <= _LONGEST:
        set_cookie(answer, REMEMBERED, value, seconds=int(_LIFE.total_seconds()) if is_persistent else None)


def forget_account(request: HttpRequest, answer: HttpResponse) -> None:
    """Make the browser forget the account, if it keeps one."""
    if cookie_name(REMEMBERED) in request.COOKIES:
        drop_cookie(answer, REMEMBERED)


def _place(tenant_id: str) -> str:
    return f"{tenant_id}:cookie:{REMEMBERED}"
