"""The remembered account that a page offers, and how a user chooses another account or removes the remembered account."""

from __future__ import annotations

from django.http import HttpResponse

from authapi.login.browser import see_other
from authapi.login.login import Login
from authapi.login.remembered_account import forget_account, remembered_account
from identity.models import Connection

# Query parameter and value that request a form without the remembered account.
ACCOUNT, OTHER = "account", "other"
# Name of the form field with which a user removes the remembered account.
FORGET = "forget"


def offered_account(login: Login, connection: Connection, typed: str) -> str:
    """Return the remembered account to offer at this connection; empty if the user or the client named another account.

    Empty for an invitation, too, because the page then shows the invited address.
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
    """Return the last account name that was typed in this browser, for any connection; empty if the user wants another account."""
    kept = remembered_account(login.http_request, login.host.tenant_id)
    return "" if kept is None or wants_other(login) else kept.identifier


def wants_other(login: Login) -> bool:
    """Tell whether the user has requested another account than the remembered account."""
    return login.http_request.GET.get(ACCOUNT) == OTHER


def forgotten(login: Login, page: str) -> HttpResponse:
    """Drop the remembered account, and show the page again."""
    answer = see_other(login.http_request, page)
    forget_account(login.http_request, answer)
    return answer
