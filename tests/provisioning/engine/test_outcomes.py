from __future__ import annotations

import json

from provisioning.runs.outcomes import Failure, storable


def _fingerprint(message: str, status: int = 400) -> str:
    return Failure("data", message, status=status).fingerprint


def test_failures_that_differ_only_in_the_user_have_the_same_fingerprint() -> None:
    first = _fingerprint('The value "ada" of ada@example.test is taken (request 17, evt_1234567890123456789012)')
    second = _fingerprint('The value "bob" of bob@example.test is taken (request 99, evt_2234567890123456789012)')

    assert first == second


def test_failures_with_another_text_or_status_have_another_fingerprint() -> None:
    assert len({_fingerprint("taken"), _fingerprint("too long"), _fingerprint("taken", 409)}) == 3


def test_values_that_postgresql_cannot_store_are_removed() -> None:
    assert storable({"a\0": ["x\0y", "half \ud800 pair", 1, None, True, 1.5]}) == {"a": ["xy", "half ? pair", 1, None, True, 1.5]}
    # Python reads these values from the JSON of a server, but PostgreSQL cannot store them.
    assert storable(json.loads("[NaN, -Infinity, 1e999]")) == ["nan", "-inf", "inf"]
