"""The page that shows a new recovery code until the user confirms that it is saved."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from authapi.failures import RequestRefused
from authapi.login import flow
from authapi.login.decision import Step, next_step
from authapi.login.transactions import drop_code, kept_code
from authapi.pages.form_fields import Problem
from authapi.pages.rendering import render_page
from authapi.pages.tenant_page import opened_login, tenant_page
from identity.hosts import HostMatch


@tenant_page("mfa_recovery_code")
def recovery_code_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the recovery code that this login created. When the user confirms that the code is saved, delete it and continue."""
    login, handle = opened_login(request, host)
    try:
        session = login.session
        if session is None or next_step(login.wish, login.situation()) is not Step.NEW_CODE:
            return flow.advance(login, handle=handle)
        is_sent = request.method == "POST" and request.POST.get("user") == session.user.user_id
        if is_sent and request.POST.get("saved") == "1":
            drop_code(login.row)
            return flow.advance(login, handle=handle)
        problems = [Problem(_("Save the code, then confirm it below."), "saved")] if is_sent else []
        context = {"user": session.user, "code": kept_code(login.row, session.user), "problems": problems}
        return render_page(login, handle, "mfa_new_code", context, status=400 if is_sent else 200)
    except RequestRefused as refused:
        return flow.refuse(login, refused)
