"""The verdict at the head of the pages of dead letters and deliveries: what happened to an event, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db import models
from django.http import HttpRequest
from django.urls import reverse

from events.admin.entities import Entity, entity_of, entry_cell
from events.models import EventStream
from foundation.admin.badges import Tone
from foundation.admin.panels import Cell
from identity.admin.object_actions import ObjectActionsAdmin, Row
from provisioning.admin.outcomes.redelivery_feedback import obstacle_of
from provisioning.models import DeadLetter, Delivery
from provisioning.models.deliveries import FailureClass

_ADVICE = {
    FailureClass.TRANSIENT: "Check that the destination answers, then redeliver.",
    FailureClass.CONFIGURATION: "Check the address and the token of the destination, then redeliver.",
    FailureClass.DATA: "Compare the sent resource with the response below. Correct the user or the mapping, "
    "then redeliver with the current profile.",
    FailureClass.SHAPE: "Compare the response below with the SCIM standard. Select the right kind of server in the action and deploy it, "
    "then redeliver.",
    FailureClass.ACTION: "Read the log of the last attempt. Correct and deploy the action, then redeliver.",
    FailureClass.MISCONFIGURED: "Correct the settings of the action and deploy it, then redeliver.",
    FailureClass.LOST: "Redeliver. If a worker ends again, read the logs of the workers.",
    FailureClass.MISSING: "The event cannot be sent again. Synchronize the stream to write the current users.",
}
# What a delivery did at the destination, by the recorded reason (`provisioning.scim.user_sync`).
_DONE = {
    "created": "The account was created at the destination.",
    "created-from-update": "The destination had no account of the user, so the account was created.",
    "created by an earlier attempt": "An earlier attempt created the account at the destination.",
    "updated": "The account was updated at the destination.",
    "adopted": "The destination had an account with the same userName. The service linked and updated this account.",
    "deleted": "The account was deleted at the destination.",
}
_SETTLED = {
    DeadLetter.State.REDELIVERED: "The event is queued again. Wait for the next attempt.",
    DeadLetter.State.RESOLVED: "Nothing. The dead letter is resolved.",
}


@dataclass(frozen=True)
class Fact:
    """A name, and a value with a link to the page of the value."""

    name: str
    cell: Cell


@dataclass(frozen=True)
class Verdict:
    """What happened, why, what to do, and the related rows: user, event, delivery, dead letter, stream.

    `leads_to` names one of the facts. The advice tells the reader to open the page of this fact. `why_label` is the label of `why`: a
    successful delivery has a result in place of a cause.
    """

    tone: Tone
    what: str
    why: str
    advice: str
    facts: Sequence[Fact]
    leads_to: str = ""
    why_label: str = "Why"


class ShowsVerdict(ObjectActionsAdmin[Row]):
    """The page of a delivery or a dead letter: a heading, a verdict, the attempts, and collapsed details."""

    change_form_template = "admin/verdict.html"
    id_field = "event_id"

    def heading_of(self, row: Any) -> str:
        entity: Entity | None = getattr(row, "entity", None)
        return str(row) if entity is None else f"{row.event_type} for {entity.text}"

    def badge_of(self, row: Any) -> str:
        badge_of_state: str = self.state_badge(row)  # type: ignore[attr-defined]  # both pages have this column
        return badge_of_state

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the row with its entity, for the heading and the links."""
        row: Any = super().get_object(request, object_id, from_field)
        if row is not None:
            row.entity = entity_of(self.admin_site, request, tenant_id=row.tenant_id, root=row.key)
        return row


def verdict_of_letter(
    site: admin.AdminSite, request: HttpRequest, letter: DeadLetter, entity: Entity, stream: EventStream | None
) -> Verdict:
    """Return the verdict of a dead letter. Its facts link to the pages that the account may see."""
    what = letter.reason or "The destination did not accept the event."
    why = f"{letter.get_error_class_display()}{_status(letter)}. {_times(letter.attempts)}."
    obstacle = obstacle_of(stream)
    advice = _SETTLED.get(DeadLetter.State(letter.state), _ADVICE[FailureClass(letter.error_class)])
    advice += f" A redelivery waits, because {obstacle}" if obstacle else ""
    delivery = Cell("Attempts and times", _page(site, request, Delivery, letter.delivery_id))
    facts = [*_facts(site, request, letter, entity, stream, event=letter.delivery.event), Fact("Delivery", delivery)]
    return Verdict("good" if letter.state == DeadLetter.State.RESOLVED else "bad", what, why, advice, facts)


def verdict_of_delivery(
    site: admin.AdminSite, request: HttpRequest, delivery: Delivery, entity: Entity, stream: EventStream | None, *, next_attempt: str
) -> Verdict:
    """Return the verdict of a delivery. Its facts link to the pages that the account may see.

    `next_attempt` is the time of the next attempt, or the reason why the delivery waits.
    """
    letter = DeadLetter.objects.filter(delivery=delivery).only("pk", "state").first()
    facts = _facts(site, request, delivery, entity, stream, event=delivery.event)
    if letter is not None:
        facts.append(Fact("Dead letter", Cell(letter.get_state_display(), _page(site, request, DeadLetter, letter.pk))))
    state = Delivery.State
    if delivery.state == state.DEAD:
        why = f"{delivery.get_error_class_display()}{_status(delivery)}. {_times(delivery.attempts)}."
        advice = "Open the dead letter to decide or redeliver."
        return Verdict("bad", delivery.error_message or "The delivery failed.", why, advice, facts, leads_to="Dead letter")
    if delivery.state == state.TODO:
        failed = f"The last attempt failed: {delivery.error_message}" if delivery.error_message else f"{_times(delivery.attempts)}."
        leads_to = "Event stream" if obstacle_of(stream) else ""
        label = "Why" if delivery.error_message else "Attempts"
        return Verdict("warn", f"Waiting. {next_attempt}", failed, _waiting_advice(stream), facts, leads_to=leads_to, why_label=label)
    said = {
        state.DELIVERED: ("good", "Delivered.", "Nothing. The destination has the event."),
        state.SKIPPED: ("quiet", "Skipped: nothing was sent.", "Nothing, if the reason is expected."),
        state.SUPERSEDED: ("quiet", "Superseded: nothing was sent.", "Nothing. A newer event of the same entity was written."),
    }
    tone, what, advice = said[state(delivery.state)]
    why = result_of(delivery) or _sentence(_times(delivery.attempts))
    label = "Result" if delivery.state == state.DELIVERED else "Why"
    return Verdict(tone, what, why, advice, facts, why_label=label)  # type: ignore[arg-type]


def outcome_of(delivery: Delivery) -> str:
    """Return the error of the last attempt, otherwise the result of the delivery; empty before the first attempt."""
    return delivery.error_message or result_of(delivery)


def result_of(delivery: Delivery) -> str:
    """Return the recorded reason of the delivery as a sentence, empty if there is none."""
    # Only the SCIM template stores `scim_id`. Another action may store the same reason with another meaning, so show its reason unchanged.
    done = _DONE.get(delivery.reason, "") if "scim_id" in delivery.detail else ""
    return done or (_sentence(delivery.reason) if delivery.reason else "")


def _waiting_advice(stream: EventStream | None) -> str:
    if stream is not None and stream.held_since is not None:
        return "Fix the cause of the hold, then resume the event stream. No event is lost."
    if stream is not None and stream.status != EventStream.Status.ENABLED:
        return "Enable the event stream to deliver the event."
    return "Nothing. The event is delivered in order."


def _facts(site: admin.AdminSite, request: HttpRequest, row: Any, entity: Entity, stream: EventStream | None, *, event: int) -> list[Fact]:
    name = "the stream was deleted" if stream is None else stream.name or stream.pk
    return [
        Fact(entity.kind.capitalize() or "Entity", replace(entity.cell, copied=entity.identifier)),
        Fact("Event", entry_cell(site, request, tenant_id=row.tenant_id, event=event)),
        Fact("Event stream", Cell(name, "" if stream is None else _page(site, request, EventStream, stream.pk))),
    ]


def _page(site: admin.AdminSite, request: HttpRequest, model: type[models.Model], key: Any) -> str:
    """Return the URL of the page of a row; empty if the account may not see the page."""
    named = f"{site.name}:{model._meta.app_label}_{model._meta.model_name}_change"
    return reverse(named, args=(quote(key),)) if site.get_model_admin(model).has_view_permission(request) else ""


def _status(row: Any) -> str:
    known = [f"HTTP status {row.error_status}" if row.error_status else "", row.error_scim_type]
    shown = ", ".join(part for part in known if part)
    return f" ({shown})" if shown else ""


def _times(attempts: int) -> str:
    return "No attempt yet" if not attempts else "1 attempt" if attempts == 1 else f"{attempts:,} attempts"


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
