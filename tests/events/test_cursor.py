"""Cursors: opaque, bound to a tenant, deterministic, and impossible to forge."""

from __future__ import annotations

import string
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.log.cursor import Cursor, CursorSealer, InvalidCursor

NEW, OLD = "n" * 40, "o" * 40
cursors = st.builds(Cursor, st.integers(0, 2**32 - 1), st.integers(0, 2**63 - 1))


def _sealer(tenant_id: str = "acme", **keys: str) -> CursorSealer:
    return CursorSealer(keys or {"k2": NEW, "k1": OLD}, tenant_id=tenant_id)


@given(cursors)
def test_a_sealed_cursor_can_be_opened_and_has_at_most_64_characters(cursor: Cursor) -> None:
    for key_id in ("k", "k2345678"):
        sealer = _sealer(**{key_id: NEW})
        text = sealer.seal(cursor)
        assert len(text) <= 64
        assert set(text) <= set(string.ascii_letters + string.digits + "-_")
        assert sealer.open(text) == cursor


@given(cursors, st.integers(0, 41), st.sampled_from(string.ascii_letters + string.digits + "-_"))
def test_any_changed_character_is_detected(cursor: Cursor, place: int, character: str) -> None:
    text = _sealer().seal(cursor)
    changed = text[:place] + character + text[place + 1 :]
    if changed != text:
        with pytest.raises(InvalidCursor):
            _sealer().open(changed)


@pytest.mark.parametrize("key_id", ["k", "k2", "k23"])
def test_a_cursor_has_exactly_one_valid_spelling(key_id: str) -> None:
    sealer = _sealer(**{key_id: NEW})
    text = sealer.seal(Cursor(1, 7))
    last = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
    opened = []
    for character in last:
        with suppress(InvalidCursor):
            opened.append((character, sealer.open(text[:-1] + character)))
    assert opened == [(text[-1], Cursor(1, 7))]


@given(st.text(max_size=80))
def test_arbitrary_text_is_refused_without_a_crash(text: str) -> None:
    with pytest.raises(InvalidCursor):
        _sealer().open(text)


def test_a_position_has_the_same_cursor_in_every_process() -> None:
    assert _sealer().seal(Cursor(1, 7)) == _sealer().seal(Cursor(1, 7)) == "EmsymKtJY5Iej-KQhs9xr_78FQKSD8u4Rk6f_3rC6w"


def test_a_cursor_of_another_tenant_is_invalid() -> None:
    with pytest.raises(InvalidCursor):
        _sealer("acme2").open(_sealer("acme").seal(Cursor(1, 7)))


def test_cursors_stay_valid_after_a_key_rotation_until_their_key_is_removed() -> None:
    old = CursorSealer({"k1": OLD}, tenant_id="acme").seal(Cursor(1, 7))
    assert _sealer().open(old) == Cursor(1, 7)
    with pytest.raises(InvalidCursor):
        CursorSealer({"k2": NEW}, tenant_id="acme").open(old)


def test_a_key_with_the_same_id_and_another_secret_opens_no_cursor() -> None:
    with pytest.raises(InvalidCursor):
        CursorSealer({"k2": OLD}, tenant_id="acme").open(_sealer().seal(Cursor(1, 7)))


def test_cursors_of_neighboring_positions_look_unrelated() -> None:
    one, two = (_sealer().seal(Cursor(1, position)) for position in (1000, 1001))
    assert sum(left == right for left, right in zip(one[4:], two[4:], strict=True)) < 12


def test_the_start_of_an_empty_log_has_a_cursor() -> None:
    assert _sealer().open(_sealer().seal(Cursor(1, 0))) == Cursor(1, 0)
