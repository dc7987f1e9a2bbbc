"""Admin pages of event streams. Here staff bind a stream to an action, and enable, disable and resume the stream."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from events.models import EventStream, Head
from foundation.admin.badges import badge
from foundation.admin.charts import Chart
from foundation.admin.panels import Cell, Panel
from identity.admin.object_actions import ObjectAction
from identity.admin.scope import staff_of
from identity.admin.service_admin import ServiceAdmin
from provisioning.admin import deletion_guards, synchronizations
from provisioning.admin.deliveries import deliveries_of_stream
from provisioning.admin.outcomes.flow_charts import success_chart, time_chart
from provisioning.admin.stream_form import ACTION, SECRET_FIELDS, WEBHOOK_FIELDS, StreamForm
from provisioning.engine import deletion_guard, streams
from provisioning.engine.not_found import users_not_found
from provisioning.engine.stream_flow import NEWEST, flow_by_hour, hour_starts
from provisioning.links.overlaps import overlap_warnings
from provisioning.models import Action, DeadLetter, Delivery, Lane

_MOST_COUNTED = 1000


def _recorded_meanwhile(stream: EventStream) -> int:
    head = Head.objects.filter(pk=stream.tenant_id).values_list("position", flat=True).first() or 0
    return max(head - stream.position, 0)


def _explain_enabling(_request: HttpRequest, stream: EventStream) -> str:
    return (
        f"The stream will deliver events recorded from now on. It skips {_recorded_meanwhile(stream)} events that were recorded while the "
        "stream was disabled. To provision existing users, use Synchronize, which can also enable the stream."
    )


def _enable(_request: HttpRequest, stream: EventStream, _values: dict[str, Any]) -> str:
    streams.enable_stream(tenant_id=stream.tenant_id, stream_id=stream.pk)
    return "The stream is enabled."


def _disable(_request: HttpRequest, stream: EventStream, _values: dict[str, Any]) -> str:
    streams.disable_stream(tenant_id=stream.tenant_id, stream_id=stream.pk)
    return "The stream is disabled."


def _resume(_request: HttpRequest, stream: EventStream, _values: dict[str, Any]) -> str:
    resumed = streams.resume_stream(tenant_id=stream.tenant_id, stream_id=stream.pk)
    return "The stream is resumed and delivers in order." if resumed else "The stream was no longer held."


class StreamAdmin(ServiceAdmin[EventStream]):
    form = StreamForm
    proven_fields = SECRET_FIELDS
    change_form_template = "admin/stream_page.html"
    id_field = "id"
    first_tab = "Overview"
    grows = False
    list_display = ("name", "status_badge", "destination_type", "position", "created_at", "tenant")
    list_filter = ("status", "destination_type")
    list_select_related = ("tenant",)
    sortable_by = ("name", "created_at")
    search_fields = ("=id", "name")
    readonly_fields = ("outbound_addresses", "position", "held_since", "held_reason", "created_at", "updated_at")
    empty_text = "No event streams yet. Add one to send the events of this tenant to a webhook or to a deployed action."
    deletion_effect = "The deliveries and dead letters of the stream are deleted as well."
    object_actions = (
        ObjectAction(
            name="enable",
            label="Enable",
            explain=_explain_enabling,
            run=_enable,
            is_offered=lambda stream: stream.status == EventStream.Status.DISABLED,
        ),
        ObjectAction(
            name="disable",
            label="Disable",
            explain=lambda _request, _stream: (
                "Events recorded until now wait until the stream is enabled. Events recorded while the stream is disabled are never "
                "delivered."
            ),
            run=_disable,
            is_offered=lambda stream: stream.status == EventStream.Status.ENABLED,
            is_dangerous=True,
        ),
        ObjectAction(
            name="resume",
            label="Resume",
            explain=lambda _request, stream: f"Delivers the waiting events in order. The stream is held because: {stream.held_reason}",
            run=_resume,
            is_offered=lambda stream: stream.held_since is not None and not deletion_guard.is_staged(stream),
        ),
        *synchronizations.STREAM_ACTIONS,
        *deletion_guards.ACTIONS,
    )

    def __init__(self, model: type[EventStream], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self.panels.append(lambda _request, row: self.state_of(row))
        # The overview includes the panel of synchronizations, because a synchronization may wait for an answer of staff.
        self.panels.append(lambda _request, row: synchronizations.jobs_of(self.admin_site, row))
        self.tabs = {"Deliveries": [lambda request, row: deliveries_of_stream(self.admin_site, request, row)]}

    def badge_of(self, row: EventStream) -> str:
        return self.status_badge(row)

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Add the charts, the reason of a hold, and the primary button that fits the state of the stream."""
        response = super().render_change_form(request, context, *args, **kwargs)
        stream = context.get("original")
        if stream is not None and response.context_data["is_form_shown"]:
            shown = response.context_data
            shown["primary_action"] = _primary_of(stream)
            shown["obstacle"] = stream.held_reason if stream.held_since is not None else ""
            shown["charts"] = self._charts_of(request, stream)
        return response

    def _charts_of(self, request: HttpRequest, stream: EventStream) -> list[Chart]:
        staff = staff_of(request)
        if staff is None or not staff.has_perm("provisioning.view_delivery"):
            return []
        starts = hour_starts(timezone.now())
        flows = flow_by_hour(stream.pk, since=starts[0])
        url = f"{reverse(f'{self.admin_site.name}:provisioning_delivery_changelist')}?{urlencode({'q': stream.pk})}"
        note = f"Only the newest {NEWEST:,} deliveries are read." if sum(flow.number for flow in flows) >= NEWEST else ""
        return [success_chart(flows, starts, url=url, note=note), time_chart(flows, starts, url=url, note=note)]

    def get_fieldsets(self, request: HttpRequest, obj: EventStream | None = None) -> Any:
        first = ["name", "subscriptions"]
        signing_off = [] if obj is not None and "webhook_signature" in obj.destination else ["is_unsigned"]
        webhook = [name for name in WEBHOOK_FIELDS if name not in signing_off]
        if obj is None:
            told = "Only for the destination “A webhook”. Fill in only the authentication fields of the chosen method."
            return [
                (None, {"fields": first}),
                ("Destination", {"fields": ["destination_type", "action"]}),
                ("Webhook", {"fields": webhook, "description": told, "classes": ["collapse"]}),
            ]
        own = [*first, *([] if self.is_bound(request) else ["tenant"])]
        destination = ["action"] if obj.destination_type == ACTION else webhook
        held = [] if obj.held_since is None else ["held_since", "held_reason"]
        state = [*held, "position", "created_at", "updated_at"]
        return [
            (None, {"fields": own}),
            ("Destination", {"fields": ["destination_type", *destination, "outbound_addresses"]}),
            ("State", {"fields": state, "classes": ["collapse"]}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: EventStream | None = None) -> Any:
        fixed = () if obj is None else ("destination_type",)
        return (*super().get_readonly_fields(request, obj), *fixed)

    def get_form(self, request: HttpRequest, obj: EventStream | None = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002
        form = super().get_form(request, obj, change=change, **kwargs)
        if "action" in form.base_fields:
            form.base_fields["action"].queryset = self.scoped_choices(request, Action).filter(is_deployed=True)
        return form

    @admin.display(description="State")
    def status_badge(self, row: EventStream) -> str:
        if row.held_since is not None:
            return badge("Held", "warn")
        return badge(row.get_status_display(), "good" if row.status == EventStream.Status.ENABLED else "quiet")

    @admin.display(description="IP addresses of this service")
    def outbound_addresses(self, _row: EventStream) -> str:
        """Return the source addresses that a firewall of the destination must allow."""
        known = ", ".join(address.replace("=", ": ", 1) for address in settings.OUTBOUND_ADDRESSES)
        return known or "Unknown: the operator of the service has not set OUTBOUND_ADDRESSES."

    def state_of(self, stream: EventStream) -> Panel:
        """Return the progress of the stream, with links to waiting deliveries and dead letters."""
        waiting = Lane.objects.filter(stream_id=stream.pk)[:_MOST_COUNTED].count()
        dead = DeadLetter.objects.filter(stream_id=stream.pk, tenant_id=stream.tenant_id, state="open")[:_MOST_COUNTED].count()
        events = Delivery.objects.filter(stream_id=stream.pk, state=Delivery.State.TODO)[:_MOST_COUNTED].count()
        query, todo = urlencode({"q": stream.pk}), urlencode({"q": stream.pk, "state__exact": "todo"})
        place = self.admin_site.name
        rows = [
            (Cell("Events in the log, not in the queue yet"), Cell(str(_recorded_meanwhile(stream)))),
            (
                Cell("Events in the queue, not delivered yet"),
                Cell(_bounded(events), f"{reverse(f'{place}:provisioning_delivery_changelist')}?{todo}"),
            ),
            (
                Cell("Users and other entities with waiting events"),
                Cell(_bounded(waiting), f"{reverse(f'{place}:provisioning_lane_changelist')}?{query}"),
            ),
            (Cell("Open dead letters"), Cell(_bounded(dead), f"{reverse(f'{place}:provisioning_deadletter_changelist')}?{query}")),
        ]
        missing = users_not_found(stream.pk)
        shown = {"q": stream.pk, "state__exact": "skipped"}
        url = f"{reverse(f'{place}:provisioning_delivery_changelist')}?{urlencode(shown)}"
        rows.append((Cell("Users not found on the server, last 24 hours"), Cell(f"{missing:,}", url)))
        rows.append(deletion_guards.guard_cells(stream))
        rows += [(Cell("Warning"), Cell(text)) for text in overlap_warnings(stream.tenant_id).get(stream.pk, [])]
        more = f"{reverse(f'{place}:provisioning_delivery_changelist')}?{query}"
        return Panel("Waiting and failed deliveries", ("", "Now"), rows, more_url=more, more_text="All deliveries")

    def create(self, request: HttpRequest, form: Any) -> EventStream:
        values = form.cleaned_data
        stream = streams.create_stream(
            tenant_id=self.tenant_for_new(request),
            name=values["name"] or None,
            subscriptions=values["subscriptions"],
            destination_type=values["destination_type"],
            destination=form.destination(),
        )
        self._warn(request, stream)
        return stream

    def change(self, request: HttpRequest, row: EventStream, form: Any) -> None:
        changes = form.changes(without=("action", *WEBHOOK_FIELDS))
        if form.is_destination_changed:
            changes["destination"] = form.destination()
        if changes:
            streams.update_stream(tenant_id=row.tenant_id, stream_id=row.pk, **changes)
            self._warn(request, row)

    def _warn(self, request: HttpRequest, stream: EventStream) -> None:
        for sentence in overlap_warnings(stream.tenant_id).get(stream.pk, []):
            self.message_user(request, sentence, messages.WARNING)


def _primary_of(stream: EventStream) -> str:
    """Return the name of the primary button that fits the state of the stream."""
    if deletion_guard.is_staged(stream):
        return "allow-deletions"
    if stream.held_since is not None:
        return "resume"
    return "enable" if stream.status == EventStream.Status.DISABLED else "synchronize"


def _bounded(count: int) -> str:
    return f"{count} or more" if count >= _MOST_COUNTED else str(count)
