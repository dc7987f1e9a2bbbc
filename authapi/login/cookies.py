"""Sets and reads the cookies of end users, and defines the names of these cookies.

`SESSION` contains the session. `BROWSER` is the mark of the browser that began a login. `INVITED` is the mark of a browser that opened the
mail of an invitation. Each cookie belongs to one host. Scripts can read only `SESSION_STATE` (`authapi.login.session_state`).

Under TLS the cookies are sent with cross-site requests (`SameSite=None`): an external provider posts its answer, and an application
requests a silent login from a frame. So the cookies do not protect forms against other sites; `form_token` protects the forms.
"""

from __future__ import annotations

import hashlib
import hmac

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from foundation.secrets.random_secrets import new_secret

SESSION = "session"
BROWSER = "browser"
# This cookie marks a browser that has opened the mail of an invitation.
INVITED = "invited"
# The state of the session, which the scripts of the page for session management read. This cookie grants no access.
SESSION_STATE = "session_state"
_LONGEST = 128


def cookie_name(name: str) -> str:
    """Return the name on the wire. The `__Host-` prefix keeps other hosts of the domain from setting the cookie."""
    return name if settings.INSECURE_HTTP else f"__Host-{name}"


def read_cookie(request: HttpRequest, name: str) -> str:
    """Return the value of a cookie; empty if the cookie is absent or too long. For the long cookie of the remembered account, call
    `remembered_account`."""
    value = request.COOKIES.get(cookie_name(name), "")
    return value if len(value) <= _LONGEST else ""


def set_cookie(answer: HttpResponse, name: str, value: str, *, seconds: int | None = None, is_readable: bool = False) -> None:
    """Set a cookie for `seconds`, or until the browser is closed. With `is_readable`, scripts of this host may read it."""
    answer.set_cookie(
        cookie_name(name),
        value,
        max_age=seconds,
        secure=not settings.INSECURE_HTTP,
        httponly=not is_readable,
        # Browsers require TLS for `None`. Plain http is for loopback, where `Lax` is enough, because all ports are the same site.
        samesite="Lax" if settings.INSECURE_HTTP else "None",
    )


def drop_cookie(answer: HttpResponse, name: str) -> None:
    """Delete a cookie in the browser."""
    set_cookie(answer, name, "", seconds=0)


def browser_of(request: HttpRequest) -> str:
    """Return the mark of this browser, or a new mark if the browser has none."""
    return read_cookie(request, BROWSER) or new_secret()


def form_token(cookie: str) -> str:
    """Return the token for a form of this browser. The token can be computed only with the cookie, and does not reveal the cookie."""
    return hashlib.sha256(b"form:" + cookie.encode()).hexdigest()


def is_own_form(request: HttpRequest, cookie: str) -> bool:
    """Tell whether a form was made for this browser and posted from a page of this host."""
    origin = request.headers.get("Origin", "")
    is_same_origin = not origin or origin == f"{request.scheme}://{request.META.get('HTTP_HOST', '')}"
    token = request.POST.get("form_token", "")
    return bool(cookie) and is_same_origin and hmac.compare_digest(token.encode(), form_token(cookie).encode())
