"""A pooler in session mode keeps the settings of each database session. Every process refuses to start behind a pooler in another mode.

`make test-cluster` runs the conformance tests of the stream behind a pooler in session mode.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection

from config.settings.database_url import database_settings
from events.checks import check_pooler
from events.log.numbering import open_connection
from foundation.database.pooler import TransactionPooling, refuse_transaction_pooling
from tests.cluster.pgbouncer import pgbouncer
from tests.conformance.web_process import ROOT, web_process
from tests.faults.worker import environment_of

SENTENCE = "set `pool_mode = session`"

pytestmark = [pytest.mark.usefixtures("committed_db")]
# A worker needs ten seconds of processor time to start. On a busy machine, this takes many times longer.
_START_SECONDS = 180


@contextmanager
def behind(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make Django connect to another URL."""
    connection.close()
    with monkeypatch.context() as patch:
        for name, value in database_settings(url, pool_size=0).items():
            patch.setitem(connection.settings_dict, name, value)
        yield
        connection.close()


@pytest.mark.parametrize("options", [{}, {"server_round_robin": 1}, {"default_pool_size": 2, "server_round_robin": 1}], ids=str)
@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.core
def test_a_pooler_that_shares_server_connections_is_refused(mode: str, options: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    with pgbouncer(mode, **options) as url, behind(url, monkeypatch):
        # Open two idle server connections, so that the pooler can use a different one for the next transaction.
        with psycopg.connect(url, autocommit=True) as one, psycopg.connect(url, autocommit=True) as other:
            for each in (one, other):
                each.execute("SELECT 1")
        with pytest.raises(TransactionPooling, match=SENTENCE):
            refuse_transaction_pooling()
        [error] = check_pooler(databases=["default"])
        assert SENTENCE in error.msg


@pytest.mark.core
def test_web_processes_and_workers_do_not_start_behind_a_pooler_in_transaction_mode() -> None:
    with pgbouncer("transaction") as url:
        with pytest.raises(RuntimeError) as web_failure, web_process("uvicorn", DATABASE_URL=url):
            pytest.fail("The web process started.")
        assert SENTENCE in str(web_failure.value)
        worker = subprocess.run(
            [sys.executable, "-m", "celery", "-A", "config", "worker", "--concurrency", "1"],
            cwd=ROOT,
            env=environment_of(ROOT, "redis://127.0.0.1:1/0") | {"DATABASE_URL": url},
            capture_output=True,
            text=True,
            timeout=_START_SECONDS,
            check=False,
        )
        assert worker.returncode != 0
        assert SENTENCE in worker.stderr


def test_a_pooler_in_session_mode_passes_the_timeouts_of_a_session_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with pgbouncer("session") as url, behind(url, monkeypatch):
        refuse_transaction_pooling()
        assert check_pooler(databases=["default"]) == []
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == ("30s",)
        connection.close()
        with open_connection() as database:
            assert database.execute("SHOW lock_timeout").fetchone() == ("10s",)


def test_an_unreachable_database_does_not_prevent_the_start(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with behind("postgresql://nobody@127.0.0.1:1/identity", monkeypatch):
        refuse_transaction_pooling()

    assert "was not checked" in caplog.text
