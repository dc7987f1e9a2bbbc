"""Admin pages of alerts, and of ignored kinds of failure."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse

from events.models import EventStream
from foundation.admin.badges import Tone, badge
from foundation.admin.json_fields import pretty
from foundation.admin.panels import Cell
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.tenant_scope import ReadOnlyAdmin
from provisioning.admin.dead_letter_actions import AuditedReasonForm
from provisioning.admin.dead_letter_kinds import STOPPED
from provisioning.admin.dead_letter_search import address_of
from provisioning.admin.outcomes.verdicts import Fact, Verdict
from provisioning.admin.rights import Right, may
from provisioning.admin.stream_names import NamesStreams
from provisioning.dead_letters import triage
from provisioning.models import Alert, IgnoredKind


def _hear_again(_request: HttpRequest, row: IgnoredKind, _values: dict[str, Any]) -> str:
    triage.stop_ignoring(tenant_id=row.tenant_id, stream_id=row.stream_id, fingerprint=row.fingerprint)
    return STOPPED


class IgnoredKindAdmin(NamesStreams, ReadOnlyAdmin[IgnoredKind], ObjectActionsAdmin[IgnoredKind]):
    stream_heading = "Ignored failure of {}"
    grows = False
    list_display = ("fingerprint", "stream", "until", "actor", "reason", "tenant_id")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant_id", "stream", "fingerprint", "until", "actor", "reason", "created_at")
    readonly_fields = ("stream",)
    empty_text = "No ignored kinds of failure. To ignore a kind, open “Dead letters”, then “By kind of failure”."
    object_actions = (
        ObjectAction(
            name="hear",
            label="Stop ignoring",
            explain=lambda *_: f"{STOPPED} Dead letters that are already ignored stay ignored until you reopen them.",
            run=_hear_again,
            form_class=AuditedReasonForm,
        ),
    )

    def has_view_permission(self, request: HttpRequest, obj: IgnoredKind | None = None) -> bool:
        return super().has_view_permission(request, obj) and may(request)

    def may_act(self, request: HttpRequest, row: IgnoredKind, action: ObjectAction) -> bool:
        return may(request, Right.TRIAGE) and super().may_act(request, row, action)


_ALERT_ADVICE = {
    Alert.Kind.NEW_FAILURE: "Open the dead letters of this kind, fix the cause, then redeliver the kind.",
    Alert.Kind.MANY_OPEN: "Open the failures by kind, fix the most frequent cause, then redeliver the kind.",
    Alert.Kind.OLD_OPEN: "Decide about the oldest dead letters: redeliver, resolve or ignore them.",
    Alert.Kind.HELD: "Fix the destination or its credentials, then resume the event stream. No event is lost.",
    Alert.Kind.NOT_FOUND: "Synchronize the event stream: the server lacks users that existed before the stream.",
}


class AlertAdmin(NamesStreams, ReadOnlyAdmin[Alert], ObjectActionsAdmin[Alert]):
    change_form_template = "admin/verdict.html"
    has_history = False
    list_display = ("created_at", "kind", "stream", "standing", "problem", "tenant_id")
    list_filter = ("kind", "created_at")
    sortable_by = ()
    fieldsets = (
        (None, {"fields": ("created_at", "taken_at", "mailed_to", "posted_at", "problem")}),
        ("All fields", {"fields": ("tenant_id", "stream", "kind", "fingerprint", "facts_text"), "classes": ("collapse",)}),
    )
    readonly_fields = ("stream", "facts_text")
    empty_text = (
        "No alerts. Administrators of the tenant get an alert about failures of a new kind, many or old dead letters, held streams, and "
        "users that are missing on a server."
    )

    def has_view_permission(self, request: HttpRequest, obj: Alert | None = None) -> bool:
        return super().has_view_permission(request, obj) and may(request)

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        return ("-tenant_id", "-pk") if self.is_bound(request) else ("-pk",)

    def heading_of(self, row: Alert) -> str:
        return str(row.get_kind_display())

    def badge_of(self, row: Alert) -> str:
        return self.standing(row)

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        row = context.get("original")
        if row is not None:
            context["verdict"] = self._verdict_of(row)
        return super().render_change_form(request, context, *args, **kwargs)

    def _verdict_of(self, row: Alert) -> Verdict:
        """Return the advice of the alert, with links to the pages that the advice mentions."""
        stream = EventStream.objects.of(row.tenant_id).filter(pk=row.stream_id).first()
        site = self.admin_site.name
        place = "" if stream is None else reverse(f"{site}:events_eventstream_change", args=(quote(stream.pk),))
        letters = address_of(stream_id=row.stream_id, q=row.fingerprint)
        shown = "Dead letters of this kind" if row.fingerprint else "Dead letters of this stream"
        facts = [
            Fact("Event stream", Cell("The stream was deleted" if stream is None else str(stream), place)),
            Fact("Dead letters", Cell(shown, f"{reverse(f'{site}:provisioning_deadletter_changelist')}?{letters}")),
            Fact("Failures", Cell("Failures by kind", reverse(f"{site}:provisioning_deadletter_kinds"))),
        ]
        why = ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in row.facts.items()) or "No details are stored."
        name = row.stream_id if stream is None else str(stream)
        return Verdict("bad", f"{row.get_kind_display()}: {name}", why, _ALERT_ADVICE[Alert.Kind(row.kind)], facts)

    @admin.display(description="State")
    def standing(self, row: Alert) -> str:
        told: tuple[str, Tone] = ("Sent", "good")
        if row.taken_at is None:
            told = ("Waiting", "quiet")
        elif not row.mailed_to and row.posted_at is None:
            told = ("Not sent", "warn")
        return badge(*told)

    @admin.display(description="Details")
    def facts_text(self, row: Alert) -> str:
        return pretty(row.facts)
