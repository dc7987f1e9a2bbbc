"""The checks of the histories that fault tests record: a correct history passes, and every planted fault is reported.

The tests need no server.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import orjson
import pytest

from tests.faults.invariants import Entry, History, Operation, Place, Reader, Sent, Session, leaks, violations

TENANT = "acme"
_PLANS = [
    ("u-1", "user.created", "a"),
    ("u-2", "user.created", "b"),
    ("u-1", "user.updated", "c"),
    ("u-2", "user.updated", "d"),
    ("u-1", "user.updated", "e"),
    ("u-2", "user.deleted", "d"),
]


def _offset(position: int) -> str:
    return f"1.{position}"


def _opened(offset: str) -> Place:
    epoch, _, position = offset.partition(".")
    return Place(int(epoch), int(position))


def _entry(position: int, entity: str, kind: str, mark: str, *, tenant: str = TENANT) -> Entry:
    event = {"type": kind, "id": f"evt-{position}", "data": {"object": {"user_id": entity, "nickname": mark}}, "x0tenant": tenant}
    return Entry(Place(1, position), kind, orjson.dumps(event))


def _sent(entry: Entry) -> Sent:
    offset = _offset(entry.place.position)
    return Sent(entry.type, offset, b'{"type":"%b","offset":"%b","event":%b}' % (entry.type.encode(), offset.encode(), entry.body))


def _bookmark(position: int) -> Sent:
    return Sent("offset-only", _offset(position), b"")


@pytest.fixture
def history() -> History:
    """Six changes of two users, read by one subscriber over two connections and by another subscriber with a filter."""
    log = [_entry(number, *plan) for number, plan in enumerate(_PLANS, 1)]
    operations = [
        Operation(
            f"w-{number}", (f"{kind}/{entity}" + ("" if kind == "user.deleted" else f"/{mark}"),), (entity,), number, number + 0.5, "ok"
        )
        for number, (entity, kind, mark) in enumerate(_PLANS, 1)
    ]
    operations += [Operation("w-7", ("user.updated/u-1/z",), ("u-1",), 7, 7.5, "fail")]
    sent = [_sent(entry) for entry in log]
    everything = [
        Session(_offset(0), [_bookmark(0), *sent[:3], _bookmark(3)], b"first"),
        Session(_offset(3), [_bookmark(3), *sent[3:], _bookmark(6)], b"second"),
    ]
    updates = [_bookmark(0), _bookmark(2), sent[2], sent[3], sent[4], _bookmark(6)]
    readers = [Reader("all", TENANT, everything), Reader("updates", TENANT, [Session(_offset(0), updates)], frozenset({"user.updated"}))]
    committed = {operation.id for operation in operations if operation.outcome == "ok"}
    return History(TENANT, operations, committed, log, 0, 0, Place(1, 6), {"u-1": "e"}, readers, _opened, [b"secret of another"])


def test_a_correct_history_has_no_violation(history: History) -> None:
    assert violations(history) == []


def _drop_logged_event(history: History) -> None:
    history.log = [*history.log[:2], *(replace(entry, place=Place(1, entry.place.position - 1)) for entry in history.log[3:])]
    history.head = Place(1, 5)
    history.readers = []


def _leave_hole(history: History) -> None:
    history.log = [entry for entry in history.log if entry.place.position != 3]


def _log_twice(history: History) -> None:
    history.log = [*history.log, replace(history.log[4], place=Place(1, 7))]
    history.head = Place(1, 7)


def _log_rolled_back_change(history: History) -> None:
    history.log = [*history.log, _entry(7, "u-1", "user.updated", "z")]
    history.head = Place(1, 7)
    history.tables = {"u-1": "z"}


def _swap_in_log(history: History) -> None:
    first, second = history.log[2], history.log[4]
    history.log = [*history.log[:2], replace(second, place=first.place), history.log[3], replace(first, place=second.place), history.log[5]]
    history.tables = {"u-1": "c"}
    history.readers = []


def _lose_acknowledged_change(history: History) -> None:
    history.committed = set(history.committed) - {"w-5"}


def _keep_old_row(history: History) -> None:
    history.tables = {"u-1": "c"}


def _keep_deleted_row(history: History) -> None:
    history.tables = {"u-1": "e", "u-2": "d"}


def _foreign_event(history: History) -> None:
    history.log = [*history.log[:3], _entry(4, "u-2", "user.updated", "d", tenant="other"), *history.log[4:]]


def _drop_frame(history: History) -> None:
    del history.readers[0].sessions[1].blocks[2]


def _drop_last_frame(history: History) -> None:
    del history.readers[0].sessions[1].blocks[-2:]


def _double_frame(history: History) -> None:
    blocks = history.readers[0].sessions[0].blocks
    blocks.insert(2, blocks[1])


def _replay_across_connections(history: History) -> None:
    history.readers[0].sessions[1].blocks.insert(1, history.readers[0].sessions[0].blocks[3])


def _swap_frames(history: History) -> None:
    blocks = history.readers[0].sessions[1].blocks
    blocks[1], blocks[2] = blocks[2], blocks[1]


def _invent_frame(history: History) -> None:
    history.readers[0].sessions[1].blocks.append(_sent(_entry(7, "u-9", "user.created", "x")))


def _change_byte(history: History) -> None:
    blocks = history.readers[0].sessions[0].blocks
    blocks[1] = replace(blocks[1], data=blocks[1].data.replace(b'"a"', b'"A"'))


def _rename_type(history: History) -> None:
    blocks = history.readers[0].sessions[0].blocks
    blocks[1] = replace(blocks[1], event="user.updated")


def _heartbeat_ahead(history: History) -> None:
    history.readers[0].sessions[0].blocks.insert(2, _bookmark(2))


def _heartbeat_ahead_of_filter(history: History) -> None:
    history.readers[1].sessions[0].blocks[1] = _bookmark(3)


def _heartbeat_back(history: History) -> None:
    history.readers[0].sessions[1].blocks[-1] = _bookmark(5)


def _unfiltered_frame(history: History) -> None:
    history.readers[1].sessions[0].blocks.insert(1, _sent(history.log[0]))


def _foreign_bytes(history: History) -> None:
    history.readers[0].sessions[1].received += b"...secret of another..."


def _resume_elsewhere(history: History) -> None:
    history.readers[0].sessions[1].start = _offset(2)


def _another_epoch(history: History) -> None:
    blocks = history.readers[0].sessions[1].blocks
    blocks[1] = replace(blocks[1], offset="2.4")


@pytest.mark.parametrize(
    ("plant", "named"),
    [
        (_drop_logged_event, "I1"),
        (_leave_hole, "I3"),
        (_log_twice, "I1"),
        (_log_rolled_back_change, "I2"),
        (_swap_in_log, "I6"),
        (_lose_acknowledged_change, "I1"),
        (_keep_old_row, "I8"),
        (_keep_deleted_row, "I8"),
        (_foreign_event, "I11"),
        (_drop_frame, "I5"),
        (_drop_last_frame, "I5"),
        (_double_frame, "I5"),
        (_replay_across_connections, "I5"),
        (_swap_frames, "I5"),
        (_invent_frame, "I2"),
        (_change_byte, "I4"),
        (_rename_type, "I4"),
        (_heartbeat_ahead, "I7"),
        (_heartbeat_ahead_of_filter, "I7"),
        (_heartbeat_back, "I7"),
        (_unfiltered_frame, "I5"),
        (_foreign_bytes, "I11"),
        (_resume_elsewhere, "did not resume"),
        (_another_epoch, "I2"),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else "",
)
def test_a_planted_fault_is_reported(history: History, plant: Callable[[History], None], named: str) -> None:
    broken = deepcopy(history)
    plant(broken)
    found = violations(broken)
    assert any(problem.startswith(named) or (" " in named and named in problem) for problem in found), found


def test_the_database_decides_whether_a_write_with_an_unknown_outcome_succeeded(history: History) -> None:
    history.operations = [replace(operation, outcome="unknown") for operation in history.operations]
    assert violations(history) == []
    history.committed = set(history.committed) | {"w-7"}
    assert [problem for problem in violations(history) if problem.startswith("I1")] != []


def test_a_reader_that_has_not_finished_must_have_the_events_up_to_its_position(history: History) -> None:
    del history.readers[0].sessions[1].blocks[3:]
    assert violations(history, readers_are_done=False) == []
    del history.readers[0].sessions[1].blocks[1]
    assert violations(history, readers_are_done=False) != []


def test_resources_that_are_not_freed_are_reported() -> None:
    assert leaks({"fds": 10, "threads": 4}, {"fds": 11, "threads": 4}, {"fds": 1, "threads": 0}) == []
    assert leaks({"fds": 10, "threads": 4}, {"fds": 12, "threads": 5}, {"fds": 1, "threads": 0}) != []
