"""The page on which a user chooses to continue with the account that is logged in, or with another account."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from authapi.failures import RequestRefused
from authapi.login import flow
from authapi.login.browser import see_other, with_parameters
from authapi.login.decision import Step
from authapi.login.transactions import bind, note_progress
from authapi.pages.rendering import render_page
from authapi.pages.tenant_page import opened_login, tenant_page
from identity.hosts import HostMatch


@tenant_page("select_account")
def select_account_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the account, and process the answer."""
    login, handle = opened_login(request, host)
    session = login.session
    try:
        if session is None or login.is_half_proven:
            return flow.advance(login, handle=handle)
        if request.method != "POST":
            # A GET shows the page even if the request must be refused. The refusal is sent after the user has chosen an account.
            return render_page(login, handle, "select_account", {"user": session.user})
        if request.POST.get("answer") != session.user.user_id:
            return see_other(request, with_parameters(flow.PAGES[Step.LOGIN], {flow.HANDLE: handle}))
        bind(login.row, session)
        note_progress(login.row, has_selected=True)
        return flow.advance(login, handle=handle)
    except RequestRefused as refused:
        return flow.refuse(login, refused)
