"""SQL scripts that are sent first and whose answer is read later.

Their results equal the results of `run_script`. After a failed script, no answer is left on the connection for the next script.
"""

from __future__ import annotations

import gc

import pytest
from django.db import DatabaseError, OperationalError, connection

from foundation.database.sent_scripts import script_sender
from foundation.database.statements import Prepared, run_script

SCRIPT = [
    Prepared("test_none", "SELECT 1 WHERE %(number)s < 0", {"number": "int"}),
    Prepared("test_first", "SELECT n, %(text)s, now() IS NULL FROM generate_series(1, %(number)s) n", {"text": "text", "number": "int"}),
    Prepared("test_json", "SELECT jsonb_build_object('a', %(text)s)", {"text": "text"}),
]
WRONG = [Prepared("test_division", "SELECT 1 / (%(number)s - %(number)s)", {"number": "int"})]


@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize("text", ["Ada", "", "' OR 1 = 1 --", "%s \\ ☃", "[1]"])
def test_sending_a_script_returns_the_same_rows_as_running_it(text: str) -> None:
    sender = script_sender()
    sender.prepare(SCRIPT)
    sender.send(SCRIPT, {"text": text, "number": 3})
    assert sender.results() == run_script(SCRIPT, {"text": text, "number": 3})


@pytest.mark.usefixtures("committed_db")
def test_an_answer_can_be_read_after_the_usual_connection_of_the_thread_was_closed() -> None:
    sender = script_sender()
    sender.prepare(SCRIPT)
    sender.send(SCRIPT, {"text": "Ada", "number": 3})
    connection.close()
    gc.collect()

    assert sender.results()[1] == (3, (1, "Ada", False))


@pytest.mark.usefixtures("committed_db")
def test_reading_from_a_closed_connection_raises_an_error_instead_of_returning_no_rows() -> None:
    sender = script_sender()
    sender.prepare(SCRIPT)
    sender.send(SCRIPT, {"text": "Ada", "number": 3})
    sender.close()

    with pytest.raises(OperationalError, match="closed before the answer was read"):
        sender.results()


@pytest.mark.usefixtures("committed_db")
def test_a_failed_script_raises_the_same_error_whether_it_is_sent_or_run() -> None:
    with pytest.raises(DatabaseError, match="division by zero"):
        run_script(WRONG, {"number": 1})
    sender = script_sender()
    sender.prepare(WRONG)
    sender.send(WRONG, {"number": 1})
    with pytest.raises(DatabaseError, match="division by zero"):
        sender.results()
    assert not sender.is_usable
    following = script_sender()
    following.prepare(SCRIPT)
    following.send(SCRIPT, {"text": "next", "number": 1})
    assert following.results()[1] == (1, (1, "next", False))
