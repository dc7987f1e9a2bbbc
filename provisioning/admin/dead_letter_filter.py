"""What staff can do with all dead letters of the current filter: redelivery as a job, and export."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.urls import URLPattern
from django.utils.decorators import method_decorator

from events.models import EventStream
from foundation.admin.bounded_paginator import COUNT_LIMIT, bounded_count
from foundation.admin.panels import Panel
from foundation.admin.streamed import streamed_file
from identity.admin.assurance import needs_proof
from identity.admin.chosen_rows import lead_to_job
from identity.admin.refusals import add_to_form, as_text, refusals
from identity.admin.scope import actor_of
from provisioning.admin.audit import note_act
from provisioning.admin.dead_letter_actions import FORCE_HELP, FORCE_LABEL, order_of
from provisioning.admin.dead_letter_page import DeadLetterPage
from provisioning.admin.dead_letter_search import FilterNotUnderstood, Search, search_of
from provisioning.admin.outcomes.redelivery_feedback import obstacle_of, outlook_panel
from provisioning.admin.outcomes.sample_changes import CHANGES, MOST_TRIED, sample_changes
from provisioning.admin.rights import Right, may
from provisioning.dead_letters.export import CONTENT_TYPES, Format, exported
from provisioning.dead_letters.redelivery import redeliver_one
from provisioning.dead_letters.redelivery_jobs import FASTEST_RATE, RATE_PER_SECOND, start_redelivery_job, unfinished_redelivery_job
from provisioning.dead_letters.redelivery_outlook import MOST_READ, outlook_of
from provisioning.dead_letters.triage import LONGEST_REASON, UNSETTLED
from provisioning.engine import nudges
from provisioning.models import Breaker, DeadLetter

_STREAMS_OFFERED = 50


class SelectionRedeliveryForm(forms.Form):
    """The form with the parameters of a redelivery job."""

    rate_per_second = forms.IntegerField(
        min_value=1,
        max_value=FASTEST_RATE,
        initial=RATE_PER_SECOND,
        label="Dead letters per second",
        help_text="Upper limit of the job. The same workers deliver new events of the stream at the same time, to the same destination.",
    )
    force = forms.BooleanField(required=False, label=FORCE_LABEL, help_text=FORCE_HELP)
    reason = forms.CharField(max_length=LONGEST_REASON, help_text="Stored with each dead letter and with the job.")

    def __init__(self, *args: Any, may_force: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not may_force:
            del self.fields["force"]


class FilterPages(DeadLetterPage):
    """The pages of redelivery and export. Both pages read the query of the list, so that they select the same dead letters."""

    def urls(self) -> list[URLPattern]:
        return [
            self.route("redelivery/", self.redelivery, "redelivery", Right.REDELIVER),
            self.route("export/", self.export, "export", Right.EXPORT),
        ]

    def tools(self, request: HttpRequest) -> list[dict[str, str]]:
        shown = request.GET.urlencode()
        tools = []
        if may(request, Right.REDELIVER):
            tools.append({"label": "Redeliver all shown", "url": self.address("redelivery", query=shown)})
        if may(request, Right.EXPORT):
            for form in CONTENT_TYPES:
                query = "&".join(part for part in (shown, f"format={form}") if part)
                tools.append({"label": f"Export {'CSV' if form == 'csv' else 'JSON lines'}", "url": self.address("export", query=query)})
        return tools

    @method_decorator(needs_proof)
    def redelivery(self, request: HttpRequest) -> HttpResponse:
        """Show the number of dead letters, and obstacles to the job. On POST, start the job, or redeliver one dead letter as a trial."""
        try:
            search = search_of(request.GET.dict())
        except FilterNotUnderstood as refusal:
            return self._back(request, str(refusal))
        if not search.stream_id:
            return self._choose_stream(request, search)
        stream = self.owner.scoped_choices(request, EventStream).filter(pk=search.stream_id).first()
        if stream is None:
            raise Http404
        may_force, may_try = may(request, Right.FORCE), may(request, Right.VIEW_BODIES)
        wants_changes = CHANGES in request.POST
        values: dict[str, Any] = (
            {"initial": request.POST.dict()} if wants_changes else {"data": request.POST if request.method == "POST" else None}
        )
        form = SelectionRedeliveryForm(**values, may_force=may_force)
        if form.is_bound and form.is_valid():
            answer = (
                self._probed(request, stream, search, form) if "probe" in request.POST else self._started(request, stream, search, form)
            )
            if answer is not None:
                return answer
        standing = _standing(stream, search)
        if wants_changes and may_try:
            standing["panels"].append(self._tried(request, stream, search))
        shown = {"form": form, "may_force": may_force, "may_try": may_try, **standing}
        return self.page(request, "admin/dead_letter_redelivery.html", "Redeliver all shown", **shown)

    def export(self, request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
        """Send the dead letters of the list as a file, and record the export in the audit log."""
        form: Format = "jsonl" if request.GET.get("format") == "jsonl" else "csv"
        try:
            search = search_of(request.GET.dict())
        except FilterNotUnderstood as refusal:
            return self._back(request, str(refusal))
        rows = search.rows(self.owner.limited(request, DeadLetter.objects.all()))
        note_act(request, "Exported", about=f"Dead letters as {form}", filter=_as_text(search))
        return streamed_file(request, exported(rows, form), name=f"dead-letters.{form}", content_type=CONTENT_TYPES[form])

    def _started(self, request: HttpRequest, stream: EventStream, search: Search, form: forms.Form) -> HttpResponse | None:
        values = form.cleaned_data
        force, reason, rate = values.get("force", False), values["reason"], values["rate_per_second"]
        try:
            job = start_redelivery_job(
                tenant_id=stream.tenant_id,
                stream_id=stream.pk,
                selection=search.selection,
                actor=actor_of(request),
                reason=reason,
                force=force,
                rate_per_second=rate,
            )
        except refusals() as refusal:
            add_to_form(form, refusal)
            return None
        told = {"filter": _as_text(search), "job": job.pk, "total": job.summary["total"], "rate": rate, "force": force}
        note_act(request, "Redelivered all shown", about=f"Dead letters of {stream.pk}", reason=reason, **told)
        obstacle = obstacle_of(stream)
        waits = f" They wait, because {obstacle}" if obstacle else ""
        return lead_to_job(self.owner, request, job, f"{job.summary['total']} redeliveries queued.{waits}", is_caution=bool(obstacle))

    def _probed(self, request: HttpRequest, stream: EventStream, search: Search, form: forms.Form) -> HttpResponse | None:
        """Redeliver the dead letter with which the job would begin, and show the page of this dead letter."""
        letter = _in_order(stream, search).first()
        if letter is None:
            form.add_error(None, "No dead letter of this filter can be redelivered any longer.")
            return None
        values = form.cleaned_data
        order = order_of(request, values["reason"], force=values.get("force", False))
        try:
            redeliver_one(tenant_id=stream.tenant_id, letter_id=letter.pk, order=order)
        except refusals() as refusal:
            form.add_error(None, as_text(refusal))
            return None
        if stream.held_since is not None:
            nudges.post(nudges.PROBE, stream.pk, stream.tenant_id)
        note_act(request, "Redelivered one first", reason=values["reason"], ids=[letter.pk], about=str(letter), force=order.force)
        obstacle = "" if stream.held_since is not None else obstacle_of(stream)
        waits = f"It waits, because {obstacle}" if obstacle else "Reload this page to see the result."
        level = messages.WARNING if obstacle else messages.SUCCESS
        self.owner.message_user(request, f"The redelivery of one dead letter is queued. {waits}", level)
        return HttpResponseRedirect(self.address("change", letter.pk))

    def _tried(self, request: HttpRequest, stream: EventStream, search: Search) -> Panel:
        """Run dry runs of the dead letters with which the job would begin."""
        letters = list(_in_order(stream, search)[:MOST_TRIED])
        note_act(request, "Dry run", ids=[letter.pk for letter in letters], about=f"Dead letters of {stream.pk}")
        return sample_changes(self.owner.admin_site, request, letters)

    def _choose_stream(self, request: HttpRequest, search: Search) -> HttpResponse:
        """Show a choice of the streams of the listed dead letters, because a job has one stream. If there is only one stream, redirect to
        its page."""
        newest = search.rows(self.owner.limited(request, DeadLetter.objects.filter(state__in=UNSETTLED))).order_by("-pk").values("pk")
        looked_at = DeadLetter.objects.filter(pk__in=newest[:COUNT_LIMIT])
        counted = looked_at.values("stream_id").annotate(letters=Count("pk")).order_by("-letters")[:_STREAMS_OFFERED]
        names = dict(
            self.owner.scoped_choices(request, EventStream).filter(pk__in=[row["stream_id"] for row in counted]).values_list("pk", "name")
        )
        query = request.GET.copy()
        rows: list[dict[str, Any]] = []
        for row in counted:
            query["stream_id"] = row["stream_id"]
            rows.append({**row, "name": names.get(row["stream_id"]) or "", "url": self.address("redelivery", query=query.urlencode())})
        if len(rows) == 1:
            return HttpResponseRedirect(rows[0]["url"])
        return self.page(request, "admin/dead_letter_streams.html", "Redeliver all shown", rows=rows)

    def _back(self, request: HttpRequest, text: str) -> HttpResponse:
        self.owner.message_user(request, text, messages.WARNING)
        return HttpResponseRedirect(self.address("changelist"))


def _in_order(stream: EventStream, search: Search) -> QuerySet[DeadLetter]:
    """Return the selected dead letters in the order of the job."""
    rows = search.selection.of(tenant_id=stream.tenant_id, stream_id=stream.pk)
    return rows.defer("body", "rebuilt_body").order_by("key", "delivery__position")


def _standing(stream: EventStream, search: Search) -> dict[str, Any]:
    """Return what the page shows before the job starts: the number of dead letters, the predicted outcome, and obstacles to the job."""
    of_stream = {"tenant_id": stream.tenant_id, "stream_id": stream.pk}
    chosen = search.selection.of(**of_stream)
    outlook = outlook_of(chosen.order_by("pk")[:MOST_READ])
    ignored = replace(search.selection, states=(DeadLetter.State.IGNORED,)).of(**of_stream)
    return {
        "stream": stream,
        "count": bounded_count(chosen.order_by("pk"), COUNT_LIMIT),
        "outlook": outlook,
        "most_read": MOST_READ,
        "panels": [outlook_panel(outlook)] if outlook.kinds else [],
        "most_counted": COUNT_LIMIT,
        "ignored": 0 if search.selection.states else bounded_count(ignored.order_by("pk"), COUNT_LIMIT),
        "failures_in_row": Breaker.objects.filter(stream_id=stream.pk).values_list("failures", flat=True).first() or 0,
        "running": unfinished_redelivery_job(**of_stream),
        "selection": _as_text(replace(search, stream_id="")),
    }


def _as_text(search: Search) -> str:
    """Return the filter as a text, for audit entries and confirmations."""
    named = {"stream": search.stream_id, **search.selection.as_document()}
    parts = [
        f"{name.replace('_', ' ')} {', '.join(value) if isinstance(value, tuple | list) else value}"
        for name, value in named.items()
        if value != ""
    ]
    return "; ".join(parts) or "everything"
