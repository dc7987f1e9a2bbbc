"""Read-only admin pages of deliveries and their attempts."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.timezone import localtime

from events.admin.entities import NamesEntities, entities_of
from events.models import Event, EventStream
from foundation.admin.badges import Tone, badge, json_block
from foundation.admin.json_fields import pretty
from foundation.admin.list_cells import age_of, two_lines
from foundation.admin.panels import Cell, Panel
from identity.admin.scope import staff_of
from identity.admin.tenant_scope import ReadOnlyAdmin
from provisioning.admin.outcomes.exchanges import NOT_STORED, exchange_blocks, laid_out, mapped_resource, remote_before
from provisioning.admin.outcomes.verdicts import ShowsVerdict, Verdict, outcome_of, verdict_of_delivery
from provisioning.admin.rights import Right, may
from provisioning.admin.stream_names import NamesStreams, attempts_line, error_kind, stream_cells
from provisioning.models import Attempt, DeadLetter, Delivery, Lane

_ATTEMPTS_SHOWN = 50
_DELIVERIES_SHOWN = 50
_NONE = "\N{EN DASH}"
_BODIES = ("exchanges_text", "log_text", "mapped", "before")
STATES: dict[str, Tone] = {"todo": "warn", "delivered": "good", "skipped": "quiet", "dead": "bad", "superseded": "quiet"}
# Fields of the group "More". The heading of the page already shows the event id and type, and the summary shows the reason and the error.
_OTHERS = ("tenant_id", "stream", "key", "position", "detail_text", "redeliveries")
_TIMES = ("created_at", "first_attempt_at", "last_attempt_at", "settled_at", "next_attempt")
_FAILURE = ("error_class", "error_status", "error_scim_type")
_OUTCOMES: dict[str, Tone] = {"delivered": "good", "skipped": "quiet", "failed": "bad", "held": "warn", "lost": "bad"}


def attempts_of(site: admin.AdminSite, delivery_id: int) -> Panel:
    """Return the attempts of a delivery, the latest first."""
    place = f"{site.name}:provisioning_attempt_change"
    tries = Attempt.objects.filter(delivery_id=delivery_id).order_by("-number").defer("exchanges", "log_lines")[:_ATTEMPTS_SHOWN]
    rows = [
        (
            Cell(f"Attempt {attempt.number}", reverse(place, args=(attempt.pk,))),
            Cell(f"{attempt.started_at:%Y-%m-%d %H:%M:%S}"),
            Cell(_NONE if attempt.duration_ms is None else f"{attempt.duration_ms:.0f} ms"),
            Cell(attempt.get_outcome_display()),
            Cell(attempt.get_trigger_display()),
            Cell(attempt.error_message or _NONE),
            Cell(f"{attempt.retry_at:%Y-%m-%d %H:%M:%S}" if attempt.retry_at else _NONE),
        )
        for attempt in tries
    ]
    columns = ("", "Started (UTC)", "Duration", "Outcome", "Trigger", "Error", "Next attempt (UTC)")
    return Panel("Attempts", columns, rows, "No finished attempts yet.")


def deliveries_of_stream(site: admin.AdminSite, request: HttpRequest, stream: EventStream) -> Panel:
    """Return the newest deliveries of a stream, for staff who may see deliveries."""
    staff = staff_of(request)
    if staff is None or not staff.has_perm("provisioning.view_delivery"):
        return Panel("Newest deliveries", (), empty_text="You do not have the permission to see deliveries. Ask an administrator for it.")
    # The unique index on stream and event returns the rows in this order.
    newest = list(Delivery.objects.filter(stream_id=stream.pk, tenant_id=stream.tenant_id).order_by("-event")[:_DELIVERIES_SHOWN])
    place = f"{site.name}:provisioning_delivery"
    entities = entities_of(site, request, [(delivery.tenant_id, delivery.key) for delivery in newest])
    rows = [
        (
            Cell(delivery.event_type, reverse(f"{place}_change", args=(delivery.pk,))),
            entities[delivery.tenant_id, delivery.key].cell,
            Cell(delivery.get_state_display()),
            Cell(outcome_of(delivery)[:120] or _NONE),
            Cell(f"{delivery.created_at:%Y-%m-%d %H:%M:%S}"),
        )
        for delivery in newest
    ]
    more = f"{reverse(f'{place}_changelist')}?{urlencode({'q': stream.pk})}"
    columns = ("Event", "Entity", "State", "Outcome", "Dispatched (UTC)")
    return Panel("Newest deliveries", columns, rows, "No deliveries yet.", more_url=more, more_text="All deliveries")


def deliveries_of(site: admin.AdminSite, request: HttpRequest, event: Event) -> Panel | None:
    """Return the deliveries of an event with their streams and dead letters, for staff who may see deliveries."""
    staff = staff_of(request)
    if staff is None or not staff.has_perm("provisioning.view_delivery"):
        return None
    found = list(Delivery.objects.filter(tenant_id=event.tenant_id, event_id=event.event_id).order_by("pk")[:_DELIVERIES_SHOWN])
    streams = stream_cells(site, request, tenant_id=event.tenant_id, stream_ids=(delivery.stream_id for delivery in found))
    letters = dict(DeadLetter.objects.filter(delivery__in=found).values_list("delivery_id", "pk")) if may(request) else {}
    place = f"{site.name}:provisioning"
    rows = [
        (
            streams[delivery.stream_id],
            Cell(delivery.get_state_display(), reverse(f"{place}_delivery_change", args=(delivery.pk,))),
            Cell(outcome_of(delivery)[:120] or _NONE),
            Cell("Show", reverse(f"{place}_deadletter_change", args=(letters[delivery.pk],))) if delivery.pk in letters else Cell(_NONE),
        )
        for delivery in found
    ]
    return Panel("Deliveries", ("Event stream", "State", "Outcome", "Dead letter"), rows, "No event stream subscribed to this event.")


# Labels of the button that opens the page to which a verdict leads. The keys are values of `Verdict.leads_to`.
_WAYS = {"Dead letter": "Open the dead letter", "Event stream": "Open the event stream"}


def _way_on(verdict: Verdict) -> dict[str, Any]:
    """Return the button of a delivery that failed or that waits because of its stream. Other deliveries have no button."""
    fact = next((fact for fact in verdict.facts if fact.name == verdict.leads_to), None)
    if fact is None or not fact.cell.url:
        return {}
    button = {"name": "open", "label": _WAYS[fact.name], "url": fact.cell.url, "is_dangerous": False}
    return {"object_actions": [button], "primary_action": "open"}


class DeliveryAdmin(NamesStreams, NamesEntities, ReadOnlyAdmin[Delivery], ShowsVerdict[Delivery]):
    list_display = ("event_of_stream", "about_entity", "state_badge", "outcome", "last_attempt", "tenant_id")
    list_filter = ("state", "error_class", "event_type")
    # Only workers change deliveries, so the audit log has no entries about them.
    has_history = False
    sortable_by = ()
    search_fields = ("=event_id", "=stream_id")
    search_help_text = "An event id (evt_…) or a stream id (est_…)."
    fieldsets = (
        ("Times", {"fields": _TIMES, "classes": ("collapse",)}),
        ("More", {"fields": (*_OTHERS, *_FAILURE), "classes": ("collapse",)}),
    )
    readonly_fields = ("stream", "next_attempt", "detail_text")
    hidden_if_empty = ("redeliveries", "detail_text", *_FAILURE, "first_attempt_at", "last_attempt_at", "settled_at")
    empty_text = "No deliveries yet. Each event to which an enabled event stream subscribes becomes a delivery."

    def __init__(self, model: type[Delivery], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self.panels.append(lambda _request, row: attempts_of(self.admin_site, row.pk))

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        # PostgreSQL returns this order with a backward scan of the index by tenant.
        return ("-tenant_id", "-pk") if self.is_bound(request) else ("-pk",)

    @admin.display(description="State")
    def state_badge(self, row: Delivery) -> str:
        return badge(row.get_state_display(), STATES[row.state])

    @admin.display(description="Next attempt")
    def next_attempt(self, row: Delivery) -> str:
        """Return the time of the next attempt, or the reason why the delivery waits."""
        if row.state != Delivery.State.TODO:
            return "None: the delivery has ended."
        lane = Lane.objects.filter(stream_id=row.stream_id, key=row.key).first()
        held = (
            EventStream.objects.of(row.tenant_id).filter(pk=row.stream_id, held_since__isnull=False).values_list("held_reason", flat=True)
        )
        if lane is None:
            return "The delivery is being queued."
        if (reason := held.first()) is not None:
            return f"Waits while the stream is held: {reason}"
        earlier = Delivery.objects.filter(stream_id=row.stream_id, key=row.key, state=Delivery.State.TODO, position__lt=row.position)
        if earlier.exists():
            return "Waits for earlier events of the same entity."
        if lane.token is not None and lane.delivery_id == row.pk:
            return "An attempt is running."
        return f"Next attempt at {localtime(max(lane.not_before, timezone.now())):%Y-%m-%d %H:%M:%S} (UTC)."

    @admin.display(description="Outcome")
    def outcome(self, row: Delivery) -> str:
        """Return the error or the result, with the number of attempts below it."""
        text = outcome_of(row)[:120]
        return two_lines(text, attempts_line(row.attempts)) if text else attempts_line(row.attempts)

    @admin.display(description="Last attempt")
    def last_attempt(self, row: Delivery) -> str:
        return age_of(row.last_attempt_at)

    @admin.display(description="Details of the result")
    def detail_text(self, row: Delivery) -> str:
        return json_block(pretty(row.detail)) if row.detail else _NONE

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        row = context.get("original")
        if row is not None:
            stream = EventStream.objects.of(row.tenant_id).filter(pk=row.stream_id).first()
            told = self.next_attempt(row) if row.state == Delivery.State.TODO else ""
            context["verdict"] = verdict_of_delivery(self.admin_site, request, row, row.entity, stream, next_attempt=told)
        response = super().render_change_form(request, context, *args, **kwargs)
        if row is not None:
            response.context_data |= _way_on(context["verdict"])
        return response


class AttemptAdmin(ReadOnlyAdmin[Attempt]):
    """Attempts with their HTTP exchanges, in which the service masked secrets before it stored them."""

    titled = "Attempt {row.number}"
    list_display = ("delivery", "number", "started_at", "duration_ms", "outcome_badge", "error_kind", "error_status", "tenant_id")
    list_filter = ("outcome", "error_class", "trigger")
    list_select_related = ("delivery",)
    sortable_by = ()
    ordering = ("-pk",)
    fieldsets = (
        (None, {"fields": ("tenant_id", "delivery", "number", "trigger", "started_at", "duration_ms", "outcome_badge", "retry_at")}),
        ("Failure", {"fields": ("error_class", "error_status", "error_scim_type", "error_message")}),
        ("Requests and log lines", {"fields": ("exchanges_text", "log_text")}),
        ("Data of the user", {"fields": ("mapped", "before")}),
    )
    readonly_fields = ("outcome_badge", *_BODIES)
    empty_text = "No attempts yet. Each try to send a delivery is an attempt. Failed attempts include their requests and responses."

    class Media:
        css: ClassVar[dict[str, list[str]]] = {"all": ["theme/dead_letters.css"]}

    def get_fieldsets(self, request: HttpRequest, obj: Attempt | None = None) -> Any:
        hidden = () if may(request, Right.VIEW_BODIES) else _BODIES
        shown = [
            (title, [name for name in options["fields"] if name not in hidden]) for title, options in super().get_fieldsets(request, obj)
        ]
        return [(title, {"fields": names}) for title, names in shown if names]

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Attempt]:
        rows = super().get_queryset(request)
        is_list = request.resolver_match is not None and str(request.resolver_match.url_name).endswith("_changelist")
        return rows.defer("exchanges", "log_lines") if is_list else rows

    def badge_of(self, row: Attempt) -> str:
        return self.outcome_badge(row)

    @admin.display(description="Error")
    def error_kind(self, row: Attempt) -> str:
        return error_kind(row)

    @admin.display(description="Outcome")
    def outcome_badge(self, row: Attempt) -> str:
        return badge(row.get_outcome_display(), _OUTCOMES[row.outcome])

    @admin.display(description="Requests and responses")
    def exchanges_text(self, row: Attempt) -> str:
        return exchange_blocks(row.exchanges)

    @admin.display(description="Sent to the server")
    def mapped(self, row: Attempt) -> str:
        """Return the body of the attempt's last write."""
        found = mapped_resource(row.exchanges)
        return json_block(laid_out(found)) if found is not None else "Not stored, or the attempt sent no write."

    @admin.display(description="On the server before")
    def before(self, row: Attempt) -> str:
        """Return the resource that the attempt found when it looked the user up."""
        found = remote_before(row.exchanges)
        return json_block(laid_out(found)) if found is not None else "Not stored, or the attempt found no account."

    @admin.display(description="Log lines of the action")
    def log_text(self, row: Attempt) -> str:
        return json_block(pretty(row.log_lines)) if row.log_lines else NOT_STORED
