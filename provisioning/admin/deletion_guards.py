"""The deletion guard on the page of a stream: its threshold, and approval of staged deletions."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest

from events.models import EventStream
from foundation.admin.panels import Cell
from identity.admin.object_actions import ObjectAction
from identity.admin.tenant_scope import ReadOnlyAdmin
from provisioning.admin.stream_names import NamesStreams
from provisioning.engine import deletion_guard
from provisioning.models import DeletionGuard


class GuardForm(forms.Form):
    threshold = forms.IntegerField(
        required=False,
        min_value=0,
        help_text="Number of users that the stream may delete within the period without your approval. Empty: no threshold.",
    )
    window_minutes = forms.IntegerField(
        min_value=1, max_value=deletion_guard.LONGEST_WINDOW_SECONDS // 60, initial=60, label="Period in minutes"
    )


def _set(_request: HttpRequest, stream: EventStream, values: dict[str, Any]) -> str:
    known = {"tenant_id": stream.tenant_id, "stream_id": stream.pk}
    deletion_guard.set_guard(**known, threshold=values["threshold"], window_seconds=values["window_minutes"] * 60)
    return "The deletion threshold was removed." if values["threshold"] is None else "The deletion threshold was set."


def _allow(_request: HttpRequest, stream: EventStream, _values: dict[str, Any]) -> str:
    deletion_guard.allow_deletions(tenant_id=stream.tenant_id, stream_id=stream.pk)
    return "The stream is resumed and delivers in order, including the deletions."


def guard_cells(stream: EventStream) -> tuple[Cell, Cell]:
    """Return the row of the guard in the panel of a stream."""
    guard = deletion_guard.guard_of(stream)
    if guard is None:
        return Cell("Deletion threshold"), Cell("Not set")
    window = f"{guard.window_seconds // 60:,} minutes" if guard.window_seconds >= 60 else f"{guard.window_seconds} seconds"
    return Cell("Deletion threshold"), Cell(f"{guard.threshold:,} in {window}; {guard.counted:,} counted in this period")


ACTIONS = (
    ObjectAction(
        name="allow-deletions",
        label="Allow these deletions",
        explain=lambda _request, stream: (
            f"{stream.held_reason} If you allow the deletions, the stream is resumed and deletes these users at the destination. "
            "If the deletions are a mistake, disable the stream."
        ),
        run=_allow,
        is_offered=deletion_guard.is_staged,
        is_dangerous=True,
    ),
    ObjectAction(
        name="deletion-threshold",
        label="Set deletion threshold",
        explain=lambda *_: (
            "Mass deletions are usually a mistake. If more users than the threshold are to be deleted within the period, the whole stream "
            "is held until you allow the deletions."
        ),
        run=_set,
        form_class=GuardForm,
    ),
)


class DeletionGuardAdmin(NamesStreams, ReadOnlyAdmin[DeletionGuard]):
    stream_heading = "Deletion threshold of {}"
    grows = False
    list_display = ("stream", "threshold", "window_seconds", "counted", "staged_since", "tenant_id")
    sortable_by = ()
    ordering = ("pk",)
    search_fields = ("=stream_id",)
    search_help_text = "A stream id (est_…)."
    empty_text = "No stream has a deletion threshold. To set one, open an event stream and choose “Set deletion threshold”."
