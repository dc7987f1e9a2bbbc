"""Admin pages of dead letters: failures, decisions and redelivery."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html

from events.admin.entities import Entity, NamesEntities
from events.models import EventStream
from foundation.admin.badges import Tone, badge, json_block
from foundation.admin.json_fields import pretty
from foundation.admin.list_cells import age_of, two_lines
from foundation.ids import EVENT_ID_PATTERN, STREAM_ID_PATTERN
from identity.admin.object_actions import ObjectAction
from identity.admin.tenant_scope import ReadOnlyAdmin
from provisioning.admin.dead_letter_actions import ACTIONS, is_unsettled, rights_for
from provisioning.admin.dead_letter_bulk import decide_selected, redeliver_selected
from provisioning.admin.dead_letter_dry_run import DryRunPage
from provisioning.admin.dead_letter_filter import FilterPages
from provisioning.admin.dead_letter_kinds import KindPages
from provisioning.admin.dead_letter_search import searched
from provisioning.admin.deliveries import attempts_of
from provisioning.admin.outcomes.exchanges import NOT_STORED, exchange_blocks
from provisioning.admin.outcomes.verdicts import ShowsVerdict, verdict_of_letter
from provisioning.admin.rights import Right, may
from provisioning.admin.stream_names import NamesStreams, StreamFilter, failure_line
from provisioning.models import Attempt, DeadLetter

_STATES: dict[str, Tone] = {"open": "bad", "acknowledged": "warn", "ignored": "quiet", "redelivered": "warn", "resolved": "good"}
_FOLDED = ("collapse",)
# Fields of the group "More". The heading of the page already shows the event id and type, and the summary shows the reason and the
# attempts.
_OTHERS = ("tenant_id", "stream", "key", "created_at")
_FAILURE = ("error_class", "error_status", "error_scim_type", "fingerprint")
_BODIES = ("last_exchanges", "event", "rebuilt_event")


class DeadLetterAdmin(NamesStreams, NamesEntities, ReadOnlyAdmin[DeadLetter], ShowsVerdict[DeadLetter]):
    list_display = ("event_of_stream", "about_entity", "state_badge", "short_reason", "age", "tenant_id", "redeliver_button")
    list_filter = ("state", "error_class", "error_status", "error_scim_type", "event_type", ("stream_id", StreamFilter), "created_at")
    indexed_filters = ("state",)
    sortable_by = ()
    search_fields = ("key",)
    search_help_text = (
        "A user id (database|…), an entity (user:database|…), an event id (evt_…), a stream id (est_…) or the fingerprint of a failure."
    )
    fieldsets = (
        ("Request and response of the last attempt", {"fields": ("last_exchanges",), "classes": _FOLDED}),
        ("Event", {"fields": ("event", "rebuilt_event"), "classes": _FOLDED}),
        ("Decision", {"fields": ("triaged_at", "triage_actor", "triage_reason", "resolved_at", "resolution"), "classes": _FOLDED}),
        ("Redelivery", {"fields": ("redelivered_at", "redelivery_actor", "redelivery_reason", "redelivery_job"), "classes": _FOLDED}),
        ("More", {"fields": (*_OTHERS, *_FAILURE), "classes": _FOLDED}),
    )
    readonly_fields = ("stream", *_BODIES)
    hidden_if_empty = ("error_status", "error_scim_type")
    actions = (redeliver_selected, decide_selected)
    object_actions = ACTIONS
    primary_action = "redeliver"
    empty_text = (
        "No dead letters. An event becomes a dead letter after its last failed attempt. Later events of the same user are still delivered. "
        "An open dead letter is kept until you redeliver, resolve or ignore it."
    )

    class Media:
        css: ClassVar[dict[str, list[str]]] = {"all": ["theme/dead_letters.css"]}

    def __init__(self, model: type[DeadLetter], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self.panels.append(lambda _request, row: attempts_of(self.admin_site, row.delivery_id))
        self._pages = (KindPages(self), FilterPages(self), DryRunPage(self))

    def get_urls(self) -> list[URLPattern]:
        return [*(pattern for page in self._pages for pattern in page.urls()), *super().get_urls()]

    # Permissions

    def has_view_permission(self, request: HttpRequest, obj: DeadLetter | None = None) -> bool:
        return super().has_view_permission(request, obj) and may(request)

    def has_redeliver_permission(self, request: HttpRequest) -> bool:
        return may(request, Right.REDELIVER)

    def has_triage_permission(self, request: HttpRequest) -> bool:
        return may(request, Right.TRIAGE)

    def may_act(self, request: HttpRequest, row: DeadLetter, action: ObjectAction) -> bool:
        return may(request, *rights_for(action)) and super().may_act(request, row, action)

    def get_fieldsets(self, request: HttpRequest, obj: DeadLetter | None = None) -> Any:
        hidden = () if may(request, Right.VIEW_BODIES) else _BODIES
        shown = [
            (title, [name for name in options["fields"] if name not in hidden]) for title, options in super().get_fieldsets(request, obj)
        ]
        return [(title, {"fields": names, "classes": _FOLDED}) for title, names in shown if names and (obj is None or _is_used(title, obj))]

    def get_list_display(self, request: HttpRequest) -> Any:
        columns = super().get_list_display(request)
        return columns if may(request, Right.REDELIVER) else [name for name in columns if name != "redeliver_button"]

    # The list

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[DeadLetter]:
        return super().get_queryset(request).select_related("delivery").defer("body", "rebuilt_body")

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        return ("-tenant_id", "-pk") if self.is_bound(request) else ("-pk",)

    def found_by_index(self, request: HttpRequest, rows: models.QuerySet[DeadLetter], term: str) -> models.QuerySet[DeadLetter] | None:
        """Search by index; return None if no index serves the term. Event ids have an index. The indexes of fingerprints and entities begin
        with the tenant, so they serve only the list of one tenant. Stream ids have no index."""
        is_event = EVENT_ID_PATTERN.fullmatch(term) is not None
        is_served = is_event or (self.is_bound(request) and STREAM_ID_PATTERN.fullmatch(term) is None)
        return searched(rows, term) if is_served else None

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Search with the rules of `search_of`, so that a redelivery or an export selects the dead letters that the list shows."""
        return searched(queryset, search_term), False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        tools = [tool for page in self._pages for tool in page.tools(request)]
        return super().changelist_view(request, {**(extra_context or {}), "tools": tools})

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        row = context.get("original")
        if row is not None:
            stream = EventStream.objects.of(row.tenant_id).filter(pk=row.stream_id).first()
            context["verdict"] = verdict_of_letter(self.admin_site, request, row, row.entity, stream)
        response = super().render_change_form(request, context, *args, **kwargs)
        if row is not None:
            response.context_data["object_actions"] += [button for page in self._pages for button in page.buttons(request, row)]
        return response

    def _place_after(self, request: HttpRequest, object_id: str) -> str:
        if "list" in request.GET:
            return reverse(f"{self.admin_site.name}:provisioning_deadletter_changelist")
        return super()._place_after(request, object_id)

    @admin.display(description="State")
    def state_badge(self, row: DeadLetter) -> str:
        return badge(row.get_state_display(), _STATES[row.state])

    @admin.display(description="Reason")
    def short_reason(self, row: DeadLetter) -> str:
        """Return the reason, with the kind of the error, the status and the number of attempts below it."""
        reason = row.reason if len(row.reason) <= 120 else f"{row.reason[:117]}…"
        return two_lines(reason, failure_line(row))

    @admin.display(description="Age")
    def age(self, row: DeadLetter) -> str:
        return age_of(row.created_at)

    @admin.display(description="Action")
    def redeliver_button(self, row: DeadLetter) -> str:
        """Return a submit button of the list's form. The button posts with the form's CSRF token and without a confirmation."""
        if not is_unsettled(row):
            return ""
        place = reverse(f"{self.admin_site.name}:provisioning_deadletter_action", args=(quote(row.pk), "redeliver"))
        entity: Entity = row.entity  # type: ignore[attr-defined]  # set by NamesEntities
        label = f"Redeliver {row.event_type} of {entity.text if entity.url else entity.root}"
        return format_html('<button type="submit" class="button" formaction="{}?list" aria-label="{}">Redeliver</button>', place, label)

    @admin.display(description="Requests and responses")
    def last_exchanges(self, row: DeadLetter) -> str:
        last = Attempt.objects.filter(delivery_id=row.delivery_id).order_by("-number").first()
        return exchange_blocks(last.exchanges) if last is not None else NOT_STORED

    @admin.display(description="Event")
    def event(self, row: DeadLetter) -> str:
        return _shown(row.body) or "Not available: the event was no longer in the log when the delivery failed."

    @admin.display(description="Event with the current profile")
    def rebuilt_event(self, row: DeadLetter) -> str:
        return _shown(row.rebuilt_body) or "None. No redelivery has sent the current profile of the user."


def _is_used(title: str, letter: DeadLetter) -> bool:
    """Tell whether the page shows the group.

    The groups “Decision” and “Redelivery” are each shown only if there was such an act.
    """
    used = {"Decision": letter.triaged_at or letter.resolved_at, "Redelivery": letter.redelivered_at}
    return bool(used.get(title, True))


def _shown(body: Any) -> str:
    return "" if body is None else json_block(pretty(json.loads(bytes(body))))
