"""A dry run of a redelivery: the request that would be sent, and the current state on the server. It sends only read requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from django.conf import settings

from events.log.envelope import with_stream
from events.models import Event, EventStream
from identity.services.failures import Conflict
from provisioning.actions.event_stream.v1.objects import Message
from provisioning.actions.scope import is_in_scope
from provisioning.actions.setups import Setup, deployed_setup
from provisioning.links.name_holders import foresee
from provisioning.mapping.table import MappingFailed, Person, map_user, person_of
from provisioning.models import DeadLetter, Delivery
from provisioning.models.actions import SCIM_USER_PROVISIONING
from provisioning.runs.current_profile import deletes_living_user, with_current_profile
from provisioning.runs.failures import ActionError
from provisioning.scim.lookups import user_path
from provisioning.scim.name_proof import proves_name, trusted_strategies
from provisioning.scim.remote_changes import changes
from provisioning.trials.mapping_preview import request_of
from provisioning.trials.scim_sessions import ScimSession, mask_of, open_session

# All reads of one preview together may take this many seconds. The limit is low, because an administrator waits for the page.
_BUDGET_SECONDS = 10.0


@dataclass
class Preview:
    """What a redelivery would do: its request, the account before the request, and the reasons why it would send nothing or fail."""

    verb: str = ""
    path: str = ""
    sent: Any = None
    before: Any = None
    changes: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    exchanges: list[dict[str, Any]] = field(default_factory=list)


def preview(letter: DeadLetter, *, current_profile: bool, names_hold: bool = True) -> Preview:
    """Return the effect that a redelivery of the dead letter would have now. If the stream is held and `names_hold` is true, a note says
    so.

    Raises `Conflict` if the effect cannot be determined, and `NotFound` if the user has no current profile. Reports an unreachable server
    as a note.
    """
    envelope = orjson.loads(_body(letter, current_profile=current_profile))
    shown = Preview(notes=_obstacles(letter, current_profile=current_profile))
    stream = EventStream.objects.of(letter.tenant_id).filter(pk=letter.stream_id).first()
    if stream is None:
        raise Conflict("The stream no longer exists.")
    if names_hold and stream.held_since is not None:
        shown.notes.append(f"The stream is held: {stream.held_reason} A redelivery waits until the stream is resumed.")
    if stream.destination_type == "webhook":
        # A webhook gets the stored bytes of the event, and the service cannot read the current state of its receiver.
        shown.verb, shown.path, shown.sent = "POST", "the webhook of the stream", envelope
        return shown
    setup = deployed_setup(tenant_id=letter.tenant_id, action_id=stream.destination.get("action_id"))
    if setup is None or setup.template != SCIM_USER_PROVISIONING:
        raise Conflict("This type of destination does not support a dry run.")
    return _of_scim(setup, envelope, shown, position=None if current_profile else _position(letter))


def _body(letter: DeadLetter, *, current_profile: bool) -> bytes:
    stored = Event.objects.filter(event_id=letter.event_id, tenant_id=letter.tenant_id).values_list("body", flat=True).first()
    body = letter.body if stored is None else stored
    if body is None:
        raise Conflict("The event was already pruned from the log, so it cannot be sent.")
    exact = bytes(body)
    if current_profile:
        exact = with_current_profile(tenant_id=letter.tenant_id, key=letter.key, event_type=letter.event_type, body=exact)
    return with_stream(exact, letter.stream_id)


def _position(letter: DeadLetter) -> int:
    return Delivery.objects.filter(pk=letter.delivery_id).values_list("position", flat=True).first() or 0


def _obstacles(letter: DeadLetter, *, current_profile: bool) -> list[str]:
    newer = Delivery.objects.filter(stream_id=letter.stream_id, key=letter.key, is_written=True)
    notes = []
    if not current_profile and newer.filter(position__gt=_position(letter)).exists():
        notes.append("A newer event of the same user was written: without force, this event ends as superseded and nothing is sent.")
    if deletes_living_user(letter.tenant_id, letter.event_type, letter.key):
        notes.append("The user exists again: without force, this deletion is not sent.")
    return notes


def _of_scim(setup: Setup, envelope: Mapping[str, Any], shown: Preview, *, position: int | None) -> Preview:
    session = None
    try:
        session = open_session(setup, mask_of(setup), seconds=_BUDGET_SECONDS, position=position)
        _look(session, envelope, shown)
    except ActionError as failure:
        shown.notes.append(f"A redelivery would fail now: {failure}")
    except MappingFailed as failure:
        shown.notes.append(f"A redelivery would fail now: the user cannot be mapped: {failure}")
    shown.exchanges = [] if session is None else session.recorder.documents()
    return shown


def _look(session: ScimSession, envelope: Mapping[str, Any], shown: Preview) -> None:
    """Look the user up in the same way as a delivery, read the account, and build the request that a delivery would send."""
    message = Message.of_envelope(envelope, prefix=settings.EVENT_ATTRIBUTE_PREFIX)
    document = message.data.object or {}
    person = person_of(document, session.table)
    if not session.settings.allows(message.data.connection_name):
        shown.notes.append(f"Skipped: users of the connection {message.data.connection_name} are not provisioned.")
        return
    if not is_in_scope(document, session.options.scope):
        shown.notes.append("Skipped: the user is outside the scope of the action.")
        return
    if not person.external_id or (not person.user_name and message.type != "user.deleted"):
        shown.notes.append(f"Skipped: the user has no {'userName' if person.external_id else 'externalId'}.")
        return
    _foresee(session, message, document, person, shown)


def _foresee(session: ScimSession, message: Message, document: Mapping[str, Any], person: Person, shown: Preview) -> None:
    """Find the account in the same way as a delivery, and add to `shown` what a delivery would do with the account."""
    strategy = message.data.connection_strategy
    is_proven = proves_name(document, person, session.options, strategy=strategy, trusted_strategies=trusted_strategies())
    person = replace(person, proves_name=is_proven)
    client = session.client_of(str(document.get("user_id", "")))
    found = client.find(person)
    if client.links.is_stale:
        shown.notes.append(
            "The event is older than the linked account of the user, or than the deletion of this account, so no request is sent."
        )
        return
    place = None if found is None else user_path(found.id)
    if found is not None:
        shown.before = client.read(found.id)
    if found is None and message.type == "user.deleted" and (client.links.is_in_doubt or client.links.is_suspected):
        shown.notes.append(
            "A redelivery would fail now: the user may have an account, but no account was found that provably belongs to the user."
        )
        return
    _judge(session, message.type, document, place, shown)
    if shown.verb in ("POST", "PUT", "PATCH"):
        own_id = None if found is None else found.id
        foreseen = foresee(client, person, session.options, own_id=own_id, before=shown.before)
        shown.notes += [] if foreseen is None else [f"{foreseen.text} {foreseen.advice}".strip()]


def _judge(session: ScimSession, event_type: str, document: Mapping[str, Any], place: str | None, shown: Preview) -> None:
    """Add to `shown` what a delivery would do by the rules of `UserSync`. `place` is the path of the account; None without an account."""
    is_deletion, is_creation = event_type == "user.deleted", event_type == "user.created"
    if is_deletion and place is not None:
        shown.verb, shown.path = "DELETE", place
    elif is_deletion:
        shown.notes.append("There is no user to delete: the event would be skipped.")
    elif place is not None and is_creation:
        shown.notes.append("The user already exists: the event counts as delivered, and nothing is sent.")
    elif place is None and not (is_creation or session.options.upsert):
        shown.notes.append("There is no user to update, and upsert is off: the event would be skipped.")
    else:
        _write(session, document, place, shown)


def _write(session: ScimSession, document: Mapping[str, Any], place: str | None, shown: Preview) -> None:
    mapped = map_user(document, session.table, "create" if place is None else "update")
    shown.path = place or "/Users"
    shown.notes += [f"Left out: {text}" for text in mapped.left_out]
    shown.verb, shown.sent = request_of(mapped, session.options, "create" if place is None else "update")
    shown.changes = changes(
        shown.before,
        mapped.resource,
        clears_rest=shown.verb == "PUT",
        removed=mapped.removed if session.options.update_mode == "patch_per_attribute" else (),
    )
