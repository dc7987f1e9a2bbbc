"""The section in which users change the email address of their account."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpResponse
from django.utils.translation import gettext as _

from authapi.accounts.self_service.address import ask_for_address
from authapi.edge.throttling import Rate
from authapi.pages.form_fields import LONGEST_EMAIL, Field, Problem, email_problem, form_fields
from authapi.protocols.account.visit import Visit


def view(visit: Visit) -> HttpResponse:
    """Show the address and the form, or mail a link to the new address. The response does not reveal whether the address is in use."""
    if not visit.is_form:
        return _page(visit, visit.kept.get("email", ""))
    email = visit.typed("email", longest=LONGEST_EMAIL)
    problem = email_problem(email) or (_("Enter an email address like name@example.com.") if not email.isprintable() else "")
    if not problem and email.casefold() == (visit.user.email or "").casefold():
        problem = _("This is your address already.")
    if problem:
        return _page(visit, email, [Problem(problem, "email")])
    rate = ask_for_address(visit.own, email=email)
    if rate is not None:
        return _page(visit, email, [Problem(_("Too many emails were sent. Wait a few minutes, then try again."))], rate)
    return visit.done("mailed")


def _page(visit: Visit, value: str, problems: Sequence[Problem] = (), rate: Rate | None = None) -> HttpResponse:
    field = Field(
        "email", _("New email address"), type="email", inputmode="email", value=value, autocomplete="email", maxlength=LONGEST_EMAIL
    )
    return visit.show("email", {"fields": form_fields([field], problems)}, problems=problems, rate=rate)
