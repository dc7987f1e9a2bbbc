"""The sections in which users download their data and delete their account."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from authapi.accounts.self_service.data_export import export_data
from authapi.accounts.self_service.deletion import delete_account, is_confirmed
from authapi.accounts.self_service.own_act import shown_name
from authapi.edge.throttling import Rate
from authapi.login.browser import see_other
from authapi.login.session_state import forget_session
from authapi.pages.form_fields import Field, Problem, form_fields
from authapi.pages.hosted_page import hosted_page
from authapi.pages.tenant_page import tenant_page
from authapi.protocols.account.entry import place_of
from authapi.protocols.account.visit import Visit
from identity.hosts import HostMatch

DELETED_PATH = place_of("deleted")
_LONGEST_NAME = 300


def export_view(visit: Visit) -> HttpResponse:
    """Show what the download contains, or return the download."""
    if not visit.is_form:
        return visit.show("data")
    made = export_data(visit.own)
    if isinstance(made, Rate):
        return visit.show("data", problems=[Problem(_("Too many downloads. Wait a few minutes, then try again."))], rate=made)
    answer = HttpResponse(orjson.dumps(made, option=orjson.OPT_INDENT_2), content_type="application/json")
    answer["Content-Disposition"] = f'attachment; filename="account-{timezone.now():%Y-%m-%d}.json"'
    answer["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'; sandbox"
    answer["Cache-Control"] = "no-store"
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


def deletion_view(visit: Visit) -> HttpResponse:
    """Show what a deletion does, or delete the account if the user has typed the name of the account."""
    if not visit.is_form:
        return _deletion(visit)
    if not is_confirmed(visit.user, visit.typed("account", longest=_LONGEST_NAME)):
        return _deletion(visit, [Problem(_("Type the name of your account exactly."), "account")])
    delete_account(visit.own)
    answer = see_other(visit.request, DELETED_PATH)
    answer["Cache-Control"] = "no-store"
    forget_session(visit.request, answer)
    return answer


@tenant_page("account_deleted", methods=("GET",))
def deleted_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show that the account was deleted. The URL of the page contains no user."""
    return hosted_page(request, host, "account/deleted")


def _deletion(visit: Visit, problems: Sequence[Problem] = ()) -> HttpResponse:
    name = shown_name(visit.user)
    field = Field("account", _("Type %(account)s to confirm") % {"account": name}, maxlength=_LONGEST_NAME)
    is_elsewhere = not visit.user.connection.is_database
    return visit.show("deletion", {"fields": form_fields([field], problems), "is_elsewhere": is_elsewhere}, problems=problems)
