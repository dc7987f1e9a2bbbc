"""The confirmation page of a list action, and the redirect to the job of an action on many rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from foundation.admin.beside_rows import page_beside
from foundation.admin.panels import Panel
from identity.models import Job

NAMED = 20


@dataclass(frozen=True)
class Chosen:
    """The selected rows: their number, the names of the first rows, and the keys that the confirmation submits again."""

    count: int
    names: Sequence[str]
    keys: Iterable[Any]
    is_across: bool = False


def answers(request: HttpRequest) -> dict[str, Any] | None:
    """Return the submitted confirmation; None if the page has not been shown yet."""
    return request.POST.dict() if request.POST.get("confirmed") else None


def ask(
    owner: ModelAdmin[Any], request: HttpRequest, chosen: Chosen, form: forms.Form,
    *, title: str, verb: str, effect: str, note: str = "", is_dangerous: bool = False, panels: Sequence[Panel] = (),
    caution: str = "", further: Sequence[tuple[str, str]] = (),
) -> TemplateResponse:  # fmt: skip
    """Return the confirmation page with the selected rows, the effect and the fields of `form`.

    `further` are names and labels of buttons that show more before the confirmation.
    """
    return page_beside(
        owner,
        request,
        "admin/chosen_rows.html",
        title,
        chosen=chosen,
        unnamed=chosen.count - len(chosen.names),
        form=form,
        verb=verb,
        effect=effect,
        note=note,
        is_dangerous=is_dangerous,
        panels=panels,
        caution=caution,
        further=further,
        action_name=request.POST.get("action", ""),
        action_checkbox_name=ACTION_CHECKBOX_NAME,
        list_query=request.GET.urlencode(),
    )


def lead_to_job(owner: ModelAdmin[Any], request: HttpRequest, job: Job, text: str, *, is_caution: bool = False) -> HttpResponse:
    """Add a message, as a warning if the job cannot take effect yet, and redirect to the page of the job."""
    owner.message_user(request, text, messages.WARNING if is_caution else messages.SUCCESS)
    return HttpResponseRedirect(reverse(f"{owner.admin_site.name}:identity_job_change", args=(quote(job.pk),)))
