"""Checks invariants of a tenant's event stream after kills, cuts and freezes.

The checks compare the writers' operations, the readers' frames and the final database. The checks need no server, so that
`test_invariants.py` can prove with planted faults that each check can fail.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

import orjson

Entity = str
Key = str


class Place(NamedTuple):
    """A position of one epoch of a log."""

    epoch: int
    position: int


@dataclass(frozen=True)
class Operation:
    """One transaction of a writer: the events that it must record if it commits, and the outcome that the writer saw."""

    id: str
    keys: tuple[Key, ...]
    entities: tuple[Entity, ...]
    started: float
    ended: float
    outcome: str


@dataclass(frozen=True)
class Entry:
    """One row of the log in the final database."""

    place: Place
    type: str
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        return dict(orjson.loads(self.body))


@dataclass(frozen=True)
class Sent:
    """One block that a reader received and that has an `id`: an event, or `offset-only`."""

    event: str
    offset: str
    data: bytes


@dataclass
class Session:
    """One connection: the cursor with which it was opened, complete blocks in order, and all received bytes."""

    start: str | None
    blocks: list[Sent] = field(default_factory=list)
    received: bytes = b""

    @property
    def last_offset(self) -> str | None:
        """The offset with which a client resumes: the id of the last complete block."""
        return self.blocks[-1].offset if self.blocks else self.start


@dataclass
class Reader:
    """One subscriber with all its connections. `types` is its filter."""

    name: str
    tenant: str
    sessions: list[Session]
    types: frozenset[str] | None = None


@dataclass
class History:
    """All facts about one tenant. `base` is the last position before the writers started, and `tables` are the rows at the end."""

    tenant: str
    operations: Sequence[Operation]
    committed: Collection[str]
    log: Sequence[Entry]
    floor: int
    base: int
    head: Place
    tables: Mapping[Entity, str]
    readers: Sequence[Reader]
    open_cursor: Callable[[str], Place]
    foreign_ids: Sequence[bytes] = ()


def violations(history: History, *, readers_are_done: bool = True) -> list[str]:
    """Return every violation as a sentence. A scenario must end with an empty list."""
    return [
        *_log_is_dense(history),
        *_log_holds_what_was_committed(history),
        *_order_follows_real_time(history),
        *_events_lead_to_the_tables(history),
        *(problem for reader in history.readers for problem in _reader_problems(history, reader, readers_are_done=readers_are_done)),
    ]


def key_of(event: Mapping[str, Any]) -> Key:
    """Return the key under which writers list the event: its type, its entity, and the name that the writer set in the document, if any.

    A deletion has no name in its key.
    """
    kind, document = event["type"], event["data"]["object"]
    mark = _mark_of(document)
    return f"{kind}/{entity_of(event)}" + (f"/{mark}" if mark and not kind.endswith(".deleted") else "")


def _mark_of(document: Mapping[str, Any]) -> str:
    return str(document.get("nickname") or document.get("display_name") or document.get("name") or "")


def entity_of(event: Mapping[str, Any]) -> Entity:
    """Return the id of the entity that the event describes. The id of a membership consists of the ids of the group and the member."""
    document = event["data"]["object"]
    if "member" in document:
        return f"{document['group']['id']}+{document['member']['id']}"
    return str(document.get("user_id") or document["id"])


def _log_is_dense(history: History) -> Iterator[str]:
    positions = [entry.place.position for entry in history.log]
    if positions != list(range(history.floor + 1, history.head.position + 1)):
        yield f"I3: positions are not dense from {history.floor + 1} to {history.head.position}"
    for entry in history.log:
        if entry.event["x0tenant"] != history.tenant:
            yield f"I11: position {entry.place.position} contains an event of {entry.event['x0tenant']}"


def _log_holds_what_was_committed(history: History) -> Iterator[str]:
    for operation in history.operations:
        if operation.outcome != "unknown" and (operation.outcome == "ok") != (operation.id in history.committed):
            yield f"I1: operation {operation.id} got the outcome {operation.outcome}, but the database has the opposite"
    owed = Counter(key for operation in history.operations if operation.id in history.committed for key in operation.keys)
    logged = Counter(key_of(entry.event) for entry in history.log if entry.place.position > history.base)
    for key, count in (owed - logged).items():
        yield f"I1: {key} was committed and {count} of its events are missing"
    for key, count in (logged - owed).items():
        yield f"I{1 if key in owed else 2}: {key} has {count} events too many"
    ids = Counter(entry.event["id"] for entry in history.log)
    yield from (f"I1: the event {event_id} is in the log {count} times" for event_id, count in ids.items() if count > 1)


def _order_follows_real_time(history: History) -> Iterator[str]:
    keys = Counter(key_of(entry.event) for entry in history.log)
    # A membership that is removed and added again has the same key each time. A key that occurs several times has no single position,
    # so this check leaves out the key.
    places = {key: entry.place.position for entry in history.log if keys[key := key_of(entry.event)] == 1}
    of_entity: dict[Entity, list[Operation]] = {}
    for operation in history.operations:
        if operation.outcome == "ok":
            for entity in operation.entities:
                of_entity.setdefault(entity, []).append(operation)
    for entity, operations in of_entity.items():
        placed = sorted(
            (operation.ended, max(at), min(at), operation) for operation in operations if (at := _places_of(operation, entity, places))
        )
        ends = [ended for ended, *_ in placed]
        highest = list(accumulate((top for _, top, *_ in placed), max))
        for _, _, lowest, operation in placed:
            before = bisect_left(ends, operation.started)
            if before and highest[before - 1] > lowest:
                yield f"I6: {entity}: {operation.id} is at {lowest}, before an operation that was acknowledged earlier"


def _places_of(operation: Operation, entity: Entity, places: Mapping[Key, int]) -> list[int]:
    return [places[key] for key in operation.keys if key.split("/")[1] == entity and key in places]


def _events_lead_to_the_tables(history: History) -> Iterator[str]:
    state: dict[Entity, str] = {}
    for entry in history.log:
        event = entry.event
        if event["type"].endswith((".deleted", ".removed")):
            state.pop(entity_of(event), None)
        elif event["type"].split(".")[0] in {"user", "group", "organization"}:
            document = event["data"]["object"]
            state[entity_of(event)] = _mark_of(document)
    # If events were pruned, rows without later events cannot be rebuilt: only rows that the kept events mention are compared.
    for entity in state.keys() | (history.tables.keys() if history.floor == 0 else set()):
        if state.get(entity) != history.tables.get(entity):
            yield f"I8: {entity} is {state.get(entity)!r} after the last event and {history.tables.get(entity)!r} in the tables"


def _reader_problems(history: History, reader: Reader, *, readers_are_done: bool) -> Iterator[str]:
    bodies = {entry.place: entry for entry in history.log}
    wanted = [entry.place for entry in history.log if reader.types is None or entry.type in reader.types]
    delivered: list[Place] = []
    for number, session in enumerate(reader.sessions):
        name = f"{reader.name}, connection {number + 1}"
        if number and session.start != reader.sessions[number - 1].last_offset:
            yield f"{name}: the reader did not resume at its last offset"
        yield from _foreign_bytes(history, reader, session, name)
        yield from _session_problems(history, session, wanted, bodies, delivered, name)
    yield from _union_problems(history, reader, wanted, delivered, readers_are_done=readers_are_done)


def _foreign_bytes(history: History, reader: Reader, session: Session, name: str) -> Iterator[str]:
    if reader.tenant != history.tenant:
        yield f"{name}: the reader reads the log of a tenant other than the checked tenant"
    for foreign in history.foreign_ids:
        if foreign in session.received:
            yield f"I11: {name}: {foreign!r} of another tenant arrived"


def _session_problems(
    history: History, session: Session, wanted: list[Place], log: Mapping[Place, Entry], delivered: list[Place], name: str
) -> Iterator[str]:
    reached = history.open_cursor(session.start) if session.start else None
    ordered = iter([place for place in wanted if reached is None or place > reached])
    following = next(ordered, None)
    if reached is None and session.blocks:
        # If the subscriber sent no cursor, the first block of the response contains the position at which the stream begins.
        first = history.open_cursor(session.blocks[0].offset)
        while following is not None and following <= first:
            following = next(ordered, None)
    for block in session.blocks:
        place = history.open_cursor(block.offset)
        if reached is not None and (place < reached or (place == reached and block.event != "offset-only")):
            yield f"I{7 if block.event == 'offset-only' else 5}: {name}: {block.event} goes back from {reached} to {place}"
        if block.event == "offset-only":
            if following is not None and place >= following:
                yield f"I7: {name}: a heartbeat has the offset {place}, but the event at {following} was not sent before"
        else:
            yield from _event_problems(block, place, following, log, name)
            delivered.append(place)
            following = next(ordered, None) if place == following else next((at for at in ordered if at > place), None)
        reached = place


def _event_problems(block: Sent, place: Place, following: Place | None, log: Mapping[Place, Entry], name: str) -> Iterator[str]:
    if place != following:
        yield f"I5: {name}: {place} arrived instead of the next position {following}"
    entry = log.get(place)
    if entry is None:
        yield f"I2: {name}: {place} is not in the log"
        return
    message = b'{"type":"' + entry.type.encode() + b'","offset":"' + block.offset.encode() + b'","event":' + entry.body + b"}"
    if block.event != entry.type or block.data != message:
        yield f"I4: {name}: {place} differs from the bytes in the log"


def _union_problems(
    history: History, reader: Reader, wanted: list[Place], delivered: list[Place], *, readers_are_done: bool
) -> Iterator[str]:
    first = next((session for session in reader.sessions if session.start or session.blocks), None)
    if first is None:
        yield f"{reader.name}: the reader has received nothing"
        return
    start = history.open_cursor(first.start or first.blocks[0].offset)
    expected = [place for place in wanted if place > start]
    if not readers_are_done:
        expected = [place for place in expected if delivered and place <= max(delivered)]
    seen = Counter(delivered)
    yield from (f"I5: {reader.name}: {place} never arrived" for place in expected if not seen[place])
    yield from (f"I5: {reader.name}: {place} arrived {count} times" for place, count in seen.items() if count > 1)


def leaks(before: Mapping[str, int], after: Mapping[str, int], allowed: Mapping[str, int]) -> list[str]:
    """Return the resources that did not return to their initial level (I12)."""
    return [
        f"I12: {name} went from {before[name]} to {after[name]}, more than {most} above the initial level"
        for name, most in allowed.items()
        if after[name] - before[name] > most
    ]


def assert_holds(history: History, *, readers_are_done: bool = True, others: Iterable[str] = ()) -> None:
    """Fail with the first twenty violations."""
    found = [*violations(history, readers_are_done=readers_are_done), *others]
    assert not found, "\n".join([f"{len(found)} violated invariants:", *found[:20]])
