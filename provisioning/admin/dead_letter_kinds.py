"""Dead letters by kind of failure, and decisions about a whole kind."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern
from django.utils import timezone

from events.models import EventStream
from identity.admin.refusals import add_to_form, refusals
from identity.admin.scope import actor_of
from provisioning.admin.audit import note_act
from provisioning.admin.dead_letter_actions import DECISIONS, AuditedReasonForm, ReasonForm
from provisioning.admin.dead_letter_page import DeadLetterPage
from provisioning.admin.dead_letter_search import address_of
from provisioning.admin.rights import Right, may
from provisioning.dead_letters import triage
from provisioning.dead_letters.failure_kinds import FailureKind, failure_kinds
from provisioning.models import DeadLetter

_IGNORED_DAYS = 30
_OF_KIND = {"acknowledge": DeadLetter.State.ACKNOWLEDGED, "ignore": DeadLetter.State.IGNORED, "resolve": DeadLetter.State.RESOLVED}
_HEAR_AGAIN = "hear"
STOPPED = "New dead letters of this kind start as open."
_EXPLAINED = {
    "acknowledge": "Marks all open and ignored dead letters of this kind as being worked on. New dead letters of this kind start as open.",
    "ignore": "Ignores all dead letters of this kind, and new dead letters until the date. Ignored dead letters cause no alert, and can "
    "still be redelivered. They are deleted when the retention of deliveries ends.",
    "resolve": "Marks all dead letters of this kind as resolved in another way, such as manual changes on the server. Their events are not "
    "sent.",
    _HEAR_AGAIN: f"{STOPPED} Dead letters that are already ignored stay ignored until you reopen them.",
}


class IgnoreKindForm(ReasonForm):
    """The form that ignores a kind: a reason and an end date. Without an end date, failures would be hidden permanently."""

    until = forms.DateField(
        widget=forms.DateInput(attrs={"type": "date"}),
        label="Ignore until",
        help_text="From this day on (UTC), new dead letters of this kind start as open.",
    )
    field_order = ("until", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["until"].initial = (timezone.now() + timedelta(days=_IGNORED_DAYS)).date()


class KindPages(DeadLetterPage):
    """The table of kinds, and the form of its buttons."""

    def urls(self) -> list[URLPattern]:
        decide = self.route("kinds/<slug:stream_id>/<slug:fingerprint>/<slug:decision>/", self.decide, "kind_decision", Right.TRIAGE)
        return [self.route("kinds/", self.kinds, "kinds"), decide]

    def tools(self, request: HttpRequest) -> list[dict[str, str]]:
        return [{"label": "By kind of failure", "url": self.address("kinds")}]

    def kinds(self, request: HttpRequest) -> HttpResponse:
        tenant = self.tenant_or_choice(request)
        if isinstance(tenant, HttpResponse):
            return tenant
        found = failure_kinds(tenant)
        rows = [{"kind": kind, "list_url": self._list_url(kind), "buttons": self._buttons(request, kind)} for kind in found.kinds]
        return self.page(request, "admin/dead_letter_kinds.html", "Dead letters by kind of failure", rows=rows, is_cut=found.is_cut)

    def _list_url(self, kind: FailureKind) -> str:
        return self.address("changelist", query=address_of(q=kind.fingerprint, stream_id=kind.stream_id))

    def _buttons(self, request: HttpRequest, kind: FailureKind) -> list[dict[str, str]]:
        query = address_of(q=kind.fingerprint, stream_id=kind.stream_id)
        buttons = []
        if may(request, Right.REDELIVER):
            states = "" if kind.open or kind.acknowledged else "&state__exact=ignored"
            buttons.append({"label": "Redeliver", "url": self.address("redelivery", query=query + states)})
        if may(request, Right.TRIAGE):
            offered = {
                "acknowledge": bool(kind.open),
                "ignore": kind.ignored_until is None,
                "resolve": True,
                _HEAR_AGAIN: kind.ignored_until is not None,
            }
            labels = {"acknowledge": "Acknowledge", "ignore": "Ignore", "resolve": "Resolve", _HEAR_AGAIN: "Stop ignoring"}
            for name, is_offered in offered.items():
                if is_offered:
                    place = self.address("kind_decision", kind.stream_id, kind.fingerprint, name)
                    buttons.append({"label": labels[name], "url": place})
        if may(request, Right.EXPORT):
            buttons.append({"label": "Export", "url": self.address("export", query=f"{query}&format=csv")})
        return buttons

    def decide(self, request: HttpRequest, stream_id: str, fingerprint: str, decision: str) -> HttpResponse:
        stream = self.owner.scoped_choices(request, EventStream).filter(pk=stream_id).first()
        if decision not in _EXPLAINED or stream is None:
            raise Http404
        form_class = {"ignore": IgnoreKindForm, _HEAR_AGAIN: AuditedReasonForm}.get(decision, ReasonForm)
        form = form_class(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid() and self._decided(request, stream, fingerprint, decision, form):
            return HttpResponseRedirect(self.address("kinds"))
        rows = DeadLetter.objects.filter(tenant_id=stream.tenant_id, stream_id=stream.pk, fingerprint=fingerprint)
        sample = rows.defer("body", "rebuilt_body").order_by("-pk").first()
        label = "Stop ignoring" if decision == _HEAR_AGAIN else DECISIONS[_OF_KIND[decision]]
        context = {"form": form, "label": label, "sample": sample, "stream": stream, "explanation": _EXPLAINED[decision]}
        return self.page(request, "admin/dead_letter_kind_decision.html", f"{label} this kind of failure", **context)

    def _decided(self, request: HttpRequest, stream: EventStream, fingerprint: str, decision: str, form: forms.Form) -> bool:
        kind = {"tenant_id": stream.tenant_id, "stream_id": stream.pk, "fingerprint": fingerprint}
        told = {"reason": form.cleaned_data["reason"], "actor": actor_of(request)}
        try:
            if decision == "ignore":
                until = datetime.combine(form.cleaned_data["until"], time.min, tzinfo=UTC)
                count = triage.ignore_kind(**kind, **told, until=until)
            elif decision == _HEAR_AGAIN:
                count = int(triage.stop_ignoring(**kind))
            else:
                count = triage.decide_kind(**kind, **told, state=_OF_KIND[decision])
        except refusals() as refusal:
            add_to_form(form, refusal)
            return False
        about = f"Kind {fingerprint} on {stream.pk}"
        note_act(request, f"{decision} kind", about=about, reason=told["reason"], until=form.cleaned_data.get("until"), changed=count)
        said = STOPPED if decision == _HEAR_AGAIN else f"{count:,} dead letter{'' if count == 1 else 's'} changed."
        self.owner.message_user(request, said, messages.SUCCESS)
        return True
