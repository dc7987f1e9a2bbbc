"""`manage.py provision synchronize` and `compare`, as a user runs them in a terminal."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.core.management import CommandError, call_command

from events.models import EventStream
from identity.models import Connection, Job, Tenant
from tests.deadlines import eventually
from tests.factories.identity import make_user
from tests.factories.scim import RealServer
from tests.faults import worker


def provision(*arguments: str) -> tuple[int, str]:
    """Run the command in this process. Return its exit status and its output."""
    said = io.StringIO()
    try:
        call_command("provision", *arguments, stdout=said, stderr=said)
    except SystemExit as end:
        return int(str(end.code)), said.getvalue()
    return 0, said.getvalue()


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace `input`, and return the list from which `input` reads its answers. The test appends the answers."""
    typed: list[str] = []
    monkeypatch.setattr("builtins.input", lambda _prompt: typed.pop(0))
    return typed


def test_the_command_shows_a_dry_run_and_asks_for_confirmation(
    database_connection: Connection, stream: EventStream, server: RealServer, answer: list[str]
) -> None:
    user = make_user(connection=database_connection, email="anna@example.test")
    answer.append("n")
    status, said = provision("synchronize", stream.pk)
    assert (status, server.users()) == (1, [])
    assert "(dry run: nothing was written): 1 created" in said
    assert "Nothing was written." in said
    answer.append("y")
    status, said = provision("synchronize", stream.pk, "--enable")
    assert status == 0
    assert "The stream is enabled at position" in said
    assert server.user(user.user_id) is not None
    stream.refresh_from_db()
    assert stream.status == "enabled"


def test_a_report_has_a_summary_and_one_line_for_each_user(database_connection: Connection, stream: EventStream, tmp_path: Path) -> None:
    user = make_user(connection=database_connection, email=None, phone_number="+4712345678")
    report = tmp_path / "report.jsonl"
    status, said = provision("synchronize", stream.pk, "--dry-run", "--report", str(report))
    assert status == 0
    assert f"skipped    {user.user_id}  missing userName" in said
    first, second = (orjson.loads(line) for line in report.read_bytes().splitlines())
    assert first["outcomes"] == {"skipped": 1}
    assert second == {"outcome": "skipped", "user_id": user.user_id, "reason": "missing userName"}


def test_the_exit_status_of_a_comparison_reports_drift(database_connection: Connection, stream: EventStream, server: RealServer) -> None:
    user = make_user(connection=database_connection, email="anna@example.test")
    assert provision("compare", stream.pk)[0] == 1
    assert provision("synchronize", stream.pk, "--yes")[0] == 0
    assert provision("compare", stream.pk)[0] == 0
    server.add(userName="gone@example.test", externalId="database|gone")
    status, said = provision("compare", stream.pk)
    assert (status, len(server.users())) == (1, 2)
    assert re.search(r"extra +database\|gone", said)
    assert user.user_id not in said


def test_the_old_command_names_still_work(database_connection: Connection, stream: EventStream, server: RealServer) -> None:
    make_user(connection=database_connection, email="anna@example.test")
    comparison, synchronization = ["reconcile", stream.pk], ["backfill", stream.pk, "--yes"]
    assert [provision(*command)[0] for command in (comparison, synchronization, comparison)] == [1, 0, 0]
    assert len(server.users()) == 1


def test_the_output_explains_how_to_allow_deletions_over_the_limit(tenant: Tenant, stream: EventStream, server: RealServer) -> None:
    server.add(userName="gone@example.test", externalId="database|gone")
    status, said = provision("synchronize", stream.pk, "--yes", "--delete-missing", "--deletion-limit", "0")
    job = Job.objects.of(tenant.pk).get()
    assert (status, len(server.users())) == (3, 1)
    assert f"manage.py provision synchronize {stream.pk} --confirm {job.pk}" in said
    assert provision("synchronize", stream.pk, "--confirm", job.pk)[0] == 0
    assert server.users() == []


def test_an_invalid_argument_is_refused_with_an_explanation(stream: EventStream) -> None:
    for arguments, text in (
        (["est_nobody"], "There is no event stream est_nobody"),
        ([stream.pk, "--yes", "--match", "employeeNumber"], "needs the expression"),
        ([stream.pk, "--resume", "job_0000000000000000"], "The synchronization does not exist"),
    ):
        with pytest.raises(CommandError, match=text):
            call_command("provision", "synchronize", *arguments)


def test_ctrl_c_prints_how_to_resume_and_resuming_completes_the_job(
    tenant: Tenant, database_connection: Connection, stream: EventStream, server: RealServer
) -> None:
    for number in range(120):
        make_user(connection=database_connection, email=f"user{number}@example.test")
    process = subprocess.Popen(
        [sys.executable, "manage.py", "provision", "synchronize", stream.pk, "--yes", "--rate", "20"],
        env={**os.environ, "DATABASE_URL": worker.url_of_test_database(), "DELIVERY_NUDGES_ENABLED": "0"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    jobs = Job.objects.of(tenant.pk)
    try:
        eventually(lambda: jobs.filter(summary__done__gte=20).exists(), seconds=60)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    job = jobs.get()
    assert process.returncode == 130, said
    assert f"manage.py provision synchronize {stream.pk} --resume {job.pk}" in said
    done: dict[str, Any] = job.summary
    assert 20 <= done["done"] < 120
    # The job can be resumed immediately, because the interrupted command has released it.
    job.parameters["plan"]["rate"] = 1000
    job.save()
    assert provision("synchronize", stream.pk, "--resume", job.pk)[0] == 0
    job.refresh_from_db()
    assert job.summary["outcomes"]["created"] == 120
    assert len(server.users()) == 120
