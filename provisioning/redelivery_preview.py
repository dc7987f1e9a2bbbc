"""A dry run of a redelivery: what would be sent, and what the server has now. It reads, and writes nothing anywhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.conf import settings

from events.envelope import with_stream
from events.models import Event, EventStream
from identity.services.failures import Conflict
from provisioning.current_profile import deletes_living_user, with_current_profile
from provisioning.failures import ActionError
from provisioning.mapping import MappedUser, MappingFailed, MappingRefused, map_user, parse_table, person_of
from provisioning.masking import Mask
from provisioning.models import DeadLetter, Delivery
from provisioning.models.actions import SCIM_USER_PROVISIONING
from provisioning.safe_http import outbound_session
from provisioning.scim import patch
from provisioning.scim.client import ScimClient, user_path
from provisioning.scim.exchanges import ExchangeRecorder
from provisioning.scim.options import OptionsRefused, ScimOptions, parse_options
from provisioning.scim.settings import NOT_CONFIDENTIAL, parse_settings
from provisioning.scim.transport import Request, ScimTransport
from provisioning.secrets import open_sealed
from provisioning.setups import Setup, deployed_setup

# All reads of one preview together: somebody waits for the page.
_BUDGET_SECONDS = 10.0


@dataclass
class Preview:
    """The request that a redelivery would make, the resource before it, and what would keep it from being made."""

    verb: str = ""
    path: str = ""
    sent: Any = None
    before: Any = None
    notes: list[str] = field(default_factory=list)
    exchanges: list[dict[str, Any]] = field(default_factory=list)


def preview(letter: DeadLetter, *, current_profile: bool) -> Preview:
    """Return what redelivering the letter would do now.

    Raises `Conflict` when it cannot be told, `NotFound` without a current profile; a server that does not answer is a note.
    """
    envelope = orjson.loads(_body(letter, current_profile=current_profile))
    shown = Preview(notes=_obstacles(letter, current_profile=current_profile))
    stream = EventStream.objects.of(letter.tenant_id).filter(pk=letter.stream_id).first()
    if stream is None:
        raise Conflict("The stream does not exist any more.")
    if stream.held_since is not None:
        shown.notes.append(f"The stream is held: {stream.held_reason} What is redelivered waits until it resumes.")
    if stream.destination_type == "webhook":
        # Only the stored bytes go there, and a webhook has nothing that could be read before.
        shown.verb, shown.path, shown.sent = "POST", "the webhook of the stream", envelope
        return shown
    setup = deployed_setup(tenant_id=letter.tenant_id, action_id=stream.destination.get("action_id"))
    if setup is None or setup.template != SCIM_USER_PROVISIONING:
        raise Conflict("What this stream's destination does with an event is known to it alone; there is no dry run.")
    return _of_scim(setup, envelope, letter.event_id, shown)


def _body(letter: DeadLetter, *, current_profile: bool) -> bytes:
    stored = Event.objects.filter(event_id=letter.event_id, tenant_id=letter.tenant_id).values_list("body", flat=True).first()
    body = letter.body if stored is None else stored
    if body is None:
        raise Conflict("The log had already dropped the event; there is nothing to send.")
    exact = bytes(body)
    if current_profile:
        exact = with_current_profile(tenant_id=letter.tenant_id, key=letter.key, event_type=letter.event_type, body=exact)
    return with_stream(exact, letter.stream_id)


def _obstacles(letter: DeadLetter, *, current_profile: bool) -> list[str]:
    newer = Delivery.objects.filter(stream_id=letter.stream_id, key=letter.key, is_written=True)
    position = Delivery.objects.filter(pk=letter.delivery_id).values_list("position", flat=True).first() or 0
    notes = []
    if not current_profile and newer.filter(position__gt=position).exists():
        notes.append("A newer event of the same user was written: without force, this one ends as superseded and nothing is sent.")
    if deletes_living_user(letter.tenant_id, letter.event_type, letter.key):
        notes.append("The user exists again: without force, this deletion is not sent.")
    return notes


def _of_scim(setup: Setup, envelope: Mapping[str, Any], event_id: str, shown: Preview) -> Preview:
    recorder = ExchangeRecorder(Mask(()))
    try:
        secrets = open_sealed(setup)
        mask = Mask(value for name, value in secrets.items() if name not in NOT_CONFIDENTIAL and len(value) > 3)
        recorder = ExchangeRecorder(mask)
        scim = parse_settings(secrets, allow_http=settings.OUTBOUND_ALLOW_HTTP)
        deadline = time.monotonic() + _BUDGET_SECONDS
        transport = ScimTransport(outbound_session(), scim, recorder, mask=mask, deadline=deadline, correlation_id=event_id)
        client = ScimClient(transport, recorder, _NothingProven(), _say_nothing)
        _look(setup, client, transport, envelope, shown)
    except ActionError as failure:
        shown.notes.append(f"It would fail now: {failure}")
    except (MappingFailed, MappingRefused, OptionsRefused) as failure:
        shown.notes.append(f"The user cannot be mapped: {failure}")
    shown.exchanges = recorder.documents()
    return shown


def _look(setup: Setup, client: ScimClient, transport: ScimTransport, envelope: Mapping[str, Any], shown: Preview) -> None:
    """Look the user up as a delivery does, read what is there, and put the request together that would follow."""
    options = parse_options(setup.options)
    table = parse_table(setup.mapping, enterprise=options.enterprise)
    document, event_type = envelope["data"]["object"], envelope["type"]
    person = person_of(document, table)
    if not person.external_id or (not person.user_name and event_type != "user.deleted"):
        shown.notes.append(f"Skipped: the user has no {'userName' if person.external_id else 'externalId'}.")
        return
    found = client.find(person)
    if found is not None:
        path = user_path(found.id)
        shown.before = orjson.loads(transport.send(Request("GET", path, "/Users/{id}", path)).body)
    if event_type == "user.deleted":
        if found is None:
            shown.notes.append("There is no user to delete: the event counts as dealt with.")
        else:
            shown.verb, shown.path = "DELETE", user_path(found.id)
    elif found is None and (event_type == "user.created" or options.upsert):
        shown.verb, shown.path, shown.sent = "POST", "/Users", map_user(document, table, "create").resource
    elif found is None:
        shown.notes.append("There is no user to update, and upsert is off: skipped..")
    elif event_type == "user.created":
        shown.notes.append("The user is there already: the event counts as delivered, and nothing is sent.")
    else:
        shown.path = user_path(found.id)
        shown.verb, shown.sent = _update(map_user(document, table, "update"), options)


def _update(mapped: MappedUser, options: ScimOptions) -> tuple[str, Any]:
    if options.update_mode == "put":
        return "PUT", mapped.resource
    if options.update_mode == "patch":
        return "PATCH", patch.whole_user(mapped.resource)
    return "PATCH", patch.per_attribute(mapped.resource, mapped.removed)


class _NothingProven:
    """A preview neither relies on findings about the server nor adds any."""

    def is_proven(self, name: str) -> bool:
        return False

    def prove(self, name: str) -> None:
        pass


def _say_nothing(level: str, message: str, **fields: Any) -> None:
    pass
