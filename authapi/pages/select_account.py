"""The page that asks which account to go on with: the one that is logged in, or another."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from authapi.failures import RequestRefused
from authapi.login import flow
from authapi.login.decision import Step
from authapi.login.transactions import bind, note_progress
from authapi.pages.rendering import visit_page
from authapi.pages.tenant_page import opened_visit, tenant_page
from authapi.protocols.oauth.responses import see_other, with_parameters
from identity.hosts import HostMatch


@tenant_page("select_account")
def select_account_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the account, and take the answer."""
    visit, handle = opened_visit(request, host)
    session, row = visit.session, visit.row
    try:
        if session is None or row is None:
            return flow.advance(visit, handle=handle)
        if request.method != "POST":
            return visit_page(visit, handle, "select_account", {"user": session.user})
        if request.POST.get("answer") != session.user.user_id:
            return see_other(request, with_parameters(flow.PAGES[Step.LOGIN], {flow.HANDLE: handle}))
        bind(row, session)
        note_progress(row, has_selected=True)
        return flow.advance(visit, handle=handle)
    except RequestRefused as refused:
        return flow.refuse(visit, refused)
