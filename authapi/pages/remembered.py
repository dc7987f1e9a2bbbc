"""The account that a page offers without asking for its name, and how a person chooses another one or has it forgotten."""

from __future__ import annotations

from django.http import HttpResponse

from authapi.login.browser import see_other
from authapi.login.login import Login
from authapi.login.remembered_account import forget_account, remembered_account
from identity.models import Connection

# How a page is asked for its form without the account that the browser remembers.
ACCOUNT, OTHER = "account", "other"
# The name of the field with which a form asks to forget the account.
FORGET = "forget"


def offered_account(login: Login, connection: Connection, typed: str) -> str:
    """Return the account of this connection that the page offers; empty where the person or the client has named another.

    An invitation names its address itself, and the page shows it as fixed.
    """
    if login.invited_email:
        return ""
    kept = remembered_account(login.http_request, login.host.tenant_id)
    if kept is None or kept.connection_id != connection.pk:
        return ""
    if login.http_request.method == "POST":
        return kept.identifier if typed == kept.identifier else ""
    if wants_other(login):
        return ""
    return kept.identifier if login.wish.login_hint in ("", kept.identifier) else ""


def remembered_name(login: Login) -> str:
    """Return what was last typed as the name of an account here, at any connection; empty where the person wants another one."""
    kept = remembered_account(login.http_request, login.host.tenant_id)
    return "" if kept is None or wants_other(login) else kept.identifier


def wants_other(login: Login) -> bool:
    """Tell whether the person has asked for another account than the remembered one."""
    return login.http_request.GET.get(ACCOUNT) == OTHER


def forgotten(login: Login, page: str) -> HttpResponse:
    """Make the browser forget the account, and show the page again."""
    answer = see_other(login.http_request, page)
    forget_account(login.http_request, answer)
    return answer
