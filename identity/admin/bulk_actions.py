"""The actions of lists in the admin, which run on the selected rows.

After a confirmation on a page, an action runs at once, or as a job if there are many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from foundation.admin.bounded_paginator import bounded_count
from foundation.database.transactions import unit_of_work
from identity.admin.assurance import asked_for_proof
from identity.admin.chosen_rows import NAMED, Chosen, answers, ask, lead_to_job
from identity.admin.refusals import add_to_form, as_text, refusals
from identity.admin.scope import tenant_in_scope
from identity.services.bulk_acts import BulkAct, act_on, deletion_act
from identity.services.bulk_jobs import MOST_ROWS, start_bulk_job

# Number of rows that one request can process within a few seconds.
AT_ONCE = 100
# If more rows match than the confirmation page has stated, a second confirmation is required. But it is not required for up to this many
# additional rows, or for up to a tenth of the stated number if that is more.
_FEW = 10
_REFUSALS_SHOWN = 10
_BY_JOB = (
    "A job processes these rows. The page of the job shows the progress, and has a button that cancels the job; a canceled job keeps the "
    "changes that it has already made. Rows that match the filter only later are not included."
)

ListAction = Callable[[Any, HttpRequest, models.QuerySet[Any]], HttpResponse | None]


class BulkForm(forms.Form):
    """The fields of the confirmation page."""

    reason = forms.CharField(max_length=500, widget=forms.Textarea(attrs={"rows": 2, "cols": 60}), help_text="Recorded in the audit log.")
    shown = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    def __init__(self, data: dict[str, Any] | None, *, needs_reason: bool) -> None:
        super().__init__(data, label_suffix="")
        self.fields["reason"].required = needs_reason
        if not needs_reason:
            self.fields["reason"].label = "Reason (optional)"


def bulk_action(act: BulkAct, *, permission: str, effect: str, is_dangerous: bool = False) -> ListAction:
    """Return the list action that runs `act` on the selected rows. `effect` describes the result on the confirmation page."""

    @admin.action(description=act.label, permissions=[permission])
    def act_on_selected(model_admin: Any, request: HttpRequest, rows: models.QuerySet[Any]) -> HttpResponse | None:
        return _answer(model_admin, request, rows, act, effect, is_dangerous=is_dangerous)

    act_on_selected.__name__ = f"{act.name}_selected"
    return act_on_selected


@admin.action(description="Delete selected %(verbose_name_plural)s", permissions=["delete"])
def delete_selected(model_admin: Any, request: HttpRequest, rows: models.QuerySet[Any]) -> HttpResponse | None:
    """Delete rows one by one through their service after a confirmation. Refused rows stay and are listed with the reason."""
    return _answer(model_admin, request, rows, deletion_act(model_admin.model), model_admin.deletion_effect, is_dangerous=True)


def _answer(
    model_admin: Any, request: HttpRequest, rows: models.QuerySet[Any], act: BulkAct, effect: str, *, is_dangerous: bool
) -> HttpResponse | None:
    """Show the confirmation page, or run the confirmed action. Return None to show the list with a message."""
    rows = rows.select_related(None).order_by("pk")
    count = bounded_count(rows.order_by(), MOST_ROWS)
    tenant, is_job = "", count > AT_ONCE
    if not count or count > MOST_ROWS:
        text = "The selected rows no longer exist." if not count else f"More than {MOST_ROWS:,} rows are selected. Filter the list first."
        model_admin.message_user(request, text, messages.WARNING)
        return None
    if is_job:
        # An action that sends many events needs a proof, so that another person at an unattended browser cannot start it.
        if (asked := asked_for_proof(request)) is not None:
            return asked
        tenant = _tenant_of(request, rows, act)
        if not tenant:
            text = f"These rows belong to several tenants. Switch to one tenant to select more than {AT_ONCE} rows."
            model_admin.message_user(request, text, messages.WARNING)
            return None
    form = BulkForm(answers(request), needs_reason=is_job)
    if form.is_bound and form.is_valid() and not _has_grown(form, count):
        if not is_job:
            _do_at_once(model_admin, request, rows, act)
            return None
        answer = _begin(model_admin, request, rows, act, form, tenant=tenant)
        if answer is not None:
            return answer
    return _page(model_admin, request, rows, act, form, count=count, effect=effect, is_job=is_job, is_dangerous=is_dangerous)


def _tenant_of(request: HttpRequest, rows: models.QuerySet[Any], act: BulkAct) -> str:
    """Return the tenant of the selected rows, or an empty string if there are several."""
    bound = tenant_in_scope(request)
    if bound is not None:
        return bound
    found = set(rows.order_by().values_list(act.tenant_path, flat=True).distinct()[:2])
    return str(found.pop()) if len(found) == 1 else ""


def _has_grown(form: BulkForm, count: int) -> bool:
    """Tell whether many more rows match than the confirmation page stated. If so, add an error with the new number."""
    shown = form.cleaned_data["shown"]
    if count <= shown + max(_FEW, shown // _FEW):
        return False
    form.add_error(None, f"Now {count:,} rows are selected instead of {shown:,}. Nothing was changed. Check the rows and confirm again.")
    return True


def _do_at_once(model_admin: Any, request: HttpRequest, rows: models.QuerySet[Any], act: BulkAct) -> None:
    """Run the action on each row in its own transaction, and add messages with the number of successes and with the first refusals."""
    count, refused = 0, []
    for row in rows[: AT_ONCE + _FEW]:
        text = model_admin.heading_of(row)
        try:
            job = unit_of_work(act_on)(act, row)
        except refusals() as refusal:
            refused.append(f"{text}: {as_text(refusal)}")
            continue
        if job is None:
            count += 1
        else:
            model_admin.say_it_goes_on(request, text, job)
    for sentence in refused[:_REFUSALS_SHOWN]:
        model_admin.message_user(request, sentence, messages.ERROR)
    if len(refused) > _REFUSALS_SHOWN:
        model_admin.message_user(request, f"The service refused {len(refused) - _REFUSALS_SHOWN} more rows.", messages.ERROR)
    if count:
        model_admin.message_user(request, f"{count} {_noun(model_admin, count)} {act.done}.", messages.SUCCESS)


def _begin(
    model_admin: Any, request: HttpRequest, rows: models.QuerySet[Any], act: BulkAct, form: BulkForm, *, tenant: str
) -> HttpResponse | None:
    try:
        job = start_bulk_job(tenant_id=tenant, act=act, rows=rows)
    except refusals() as refusal:
        add_to_form(form, refusal)
        return None
    total = job.summary["total"]
    return lead_to_job(model_admin, request, job, f"A job processes {total:,} {_noun(model_admin, total)}. You can leave this page.")


def _page(
    model_admin: Any, request: HttpRequest, rows: models.QuerySet[Any], act: BulkAct, form: BulkForm,
    *, count: int, effect: str, is_job: bool, is_dangerous: bool,
) -> TemplateResponse:  # fmt: skip
    verb = act.label.partition(" ")[0]
    if not form.is_bound:
        form.initial["shown"] = count
    else:
        form.data = {**form.data, "shown": str(count)}
    is_across = request.POST.get("select_across") == "1"
    named = list(rows[:NAMED])
    # For a selection of all matching rows the page sends one key: Django then ignores the keys and selects every row of the list's query.
    keys: Iterable[Any] = [row.pk for row in named[:1]] if is_across else rows.values_list("pk", flat=True)[: AT_ONCE * 10]
    title = f"{act.label.replace(' selected ', f' {count:,} ')}?" if count != 1 else f"{verb} 1 {_noun(model_admin, 1)}?"
    chosen, note = Chosen(count, [model_admin.heading_of(row) for row in named], keys, is_across), _BY_JOB if is_job else ""
    return ask(model_admin, request, chosen, form, title=title, verb=verb, effect=effect, note=note, is_dangerous=is_dangerous)


def _noun(model_admin: Any, count: int) -> str:
    return str(model_admin.opts.verbose_name if count == 1 else model_admin.opts.verbose_name_plural)
