"""Admin pages of ignored kinds of failures, and of alerts."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from foundation.admin.badges import Tone, badge
from foundation.admin.json_fields import pretty
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.tenant_scope import ReadOnlyAdmin
from provisioning.admin.dead_letter_actions import ReasonForm
from provisioning.admin.rights import Right, may
from provisioning.admin.stream_names import NamesStreams
from provisioning.dead_letters import triage
from provisioning.models import Alert, IgnoredKind


def _hear_again(_request: HttpRequest, row: IgnoredKind, _values: dict[str, Any]) -> str:
    triage.stop_ignoring(tenant_id=row.tenant_id, stream_id=row.stream_id, fingerprint=row.fingerprint)
    return "New letters of this kind start as open."


class IgnoredKindAdmin(NamesStreams, ReadOnlyAdmin[IgnoredKind], ObjectActionsAdmin[IgnoredKind]):
    grows = False
    list_display = ("fingerprint", "stream", "until", "actor", "reason", "tenant_id")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant_id", "stream", "fingerprint", "until", "actor", "reason", "created_at")
    readonly_fields = ("stream",)
    empty_text = "No ignored kinds of failures. Ignore one on the page of dead letters by kind, with a date and a reason."
    object_actions = (
        ObjectAction(
            name="hear",
            label="Stop ignoring",
            explain=lambda *_: "New letters of this kind start as open. Letters that are ignored now stay ignored until you open them.",
            run=_hear_again,
            form_class=ReasonForm,
        ),
    )

    def has_view_permission(self, request: HttpRequest, obj: IgnoredKind | None = None) -> bool:
        return super().has_view_permission(request, obj) and may(request)

    def may_act(self, request: HttpRequest, row: IgnoredKind, action: ObjectAction) -> bool:
        return may(request, Right.TRIAGE) and super().may_act(request, row, action)


class AlertAdmin(NamesStreams, ReadOnlyAdmin[Alert]):
    list_display = ("created_at", "kind", "stream", "standing", "problem", "tenant_id")
    list_filter = ("kind", "created_at")
    sortable_by = ()
    fields = ("tenant_id", "stream", "kind", "fingerprint", "facts_text", "created_at", "taken_at", "mailed_to", "posted_at", "problem")
    readonly_fields = ("stream", "facts_text")
    empty_text = "No alerts. The admins of the tenant get emails about new kinds of failures, many or old dead letters, and held streams."

    def has_view_permission(self, request: HttpRequest, obj: Alert | None = None) -> bool:
        return super().has_view_permission(request, obj) and may(request)

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        return ("-tenant_id", "-pk") if self.is_bound(request) else ("-pk",)

    @admin.display(description="State")
    def standing(self, row: Alert) -> str:
        told: tuple[str, Tone] = ("Sent", "good")
        if row.taken_at is None:
            told = ("Waiting", "quiet")
        elif not row.mailed_to and row.posted_at is None:
            told = ("Not sent", "warn")
        return badge(*told)

    @admin.display(description="Facts")
    def facts_text(self, row: Alert) -> str:
        return pretty(row.facts)
