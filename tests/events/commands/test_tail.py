"""`manage.py events tail` as a separate process, against real and misbehaving servers."""

from __future__ import annotations

import json
import random
import shlex
import signal
import subprocess
import sys
from itertools import cycle, islice
from pathlib import Path

import pytest
from django.core.management.base import CommandParser

from events.commands.tail import add_arguments, resume_command
from events.models import Head, LogEntry
from tests.conformance.target import Target
from tests.deadlines import eventually
from tests.events.client.misbehaving import Request, Wire, cutting_proxy, misbehaving
from tests.events.client.test_subscription import OPENING, frame
from tests.events.commands.conftest import ROOT, environment, reached, run, start

TYPES = ("user.created", "user.updated", "connection.updated", "user.deleted")


def some(count: int) -> tuple[str, ...]:
    return tuple(islice(cycle(TYPES), count))


def ids_in(output: str) -> list[str]:
    return [json.loads(line)["event"]["id"] for line in output.splitlines()]


def run_line(line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command as an operator would paste it."""
    return subprocess.run(
        ["bash", "-c", line], cwd=ROOT, env=environment(**variables), capture_output=True, text=True, timeout=90, check=False
    )


def go_on_with(errors: str) -> str:
    return next(line.removeprefix("continue with: ") for line in errors.splitlines() if line.startswith("continue with: "))


def test_json_lines_are_the_received_bytes(target: Target) -> None:
    with target.subscribe() as stream:
        stream.opened()
        target.write(*some(5), padding=10)
        sent = [block.data for block in stream.events(5)]
    done = run("tail", *reached(target), "--since", "1h", "--json", "--max", "5", EVENTS_TOKEN=target.token())
    assert (done.returncode, done.stdout.splitlines()) == (0, sent), done.stderr
    assert "5 events in" in done.stderr
    assert "2  user.created" in done.stderr


def test_the_command_selects_events_by_type_patterns_and_writes_no_color_into_a_pipe(target: Target) -> None:
    target.write("connection.created", "user.created", "group.member.added", "user.deleted")
    done = run("tail", *reached(target), "--since", "1h", "--type", "user.*", "--max", "2", EVENTS_TOKEN=target.token())
    assert [line.split("  ")[1].strip() for line in done.stdout.splitlines()] == ["user.created", "user.deleted"]
    assert "\x1b" not in done.stdout


def test_the_raw_format_is_the_received_stream(target: Target) -> None:
    token = target.token()
    with target.subscribe(token=token) as stream:
        start_offset = stream.opened().id
        target.write(*some(3))
        stream.events(3)
        wire = stream.body
    done = run("tail", *reached(target), "--from", str(start_offset), "--raw", "--max", "3", EVENTS_TOKEN=token)
    # Compare only the part after the retry delay, because the delay differs from connection to connection.
    assert done.stdout.encode().partition(b"event: offset-only")[2] == wire.partition(b"event: offset-only")[2]


def test_the_printed_command_resumes_with_the_next_event(target: Target) -> None:
    ids = target.write(*some(7))
    token = target.token()
    first = run("tail", *reached(target), "--since", "1h", "--json", "--max", "3", EVENTS_TOKEN=token)
    second = run_line(go_on_with(first.stderr), EVENTS_TOKEN=token)
    third = run_line(go_on_with(second.stderr).replace("--max 3", "--max 1"), EVENTS_TOKEN=token)
    assert ids_in(first.stdout) + ids_in(second.stdout) + ids_in(third.stdout) == ids


def test_no_event_is_lost_or_repeated_after_cut_connections(target: Target) -> None:
    ids = target.write(*some(60), padding=200)
    cuts = random.Random(4)
    with cutting_proxy(target.address, lambda number: cuts.randrange(100, 9000) if number < 12 else None) as proxy:
        arguments = [*reached(target, proxy.port), "--since", "1h", "--json", "--max", "60", "--verbose"]
        done = run("tail", *arguments, EVENTS_TOKEN=target.token(), within=100)
    assert ids_in(done.stdout) == ids
    assert len(proxy.streams()) > 5


def test_a_state_file_is_valid_after_the_command_was_killed(target: Target, tmp_path: Path) -> None:
    token, state = target.token(), tmp_path / "tail.state"
    arguments = ["tail", *reached(target), "--since", "1h", "--json", "--state", str(state)]
    ids = target.write(*some(40))
    killed = start(*arguments, EVENTS_TOKEN=token)
    assert killed.stdout is not None
    first = [killed.stdout.readline() for _ in range(25)]
    eventually(state.exists)
    killed.send_signal(signal.SIGKILL)
    first += killed.stdout.readlines()
    killed.communicate()
    assert [entry.name for entry in tmp_path.iterdir() if not entry.name.startswith(".")] == ["tail.state"]
    ids += target.write(*some(20))
    seen = ids_in(b"".join(first).decode())
    # The first command has printed some or all of the forty events. The stored offset, where the second command starts, is never after
    # the last printed event.
    second = start(*arguments, EVENTS_TOKEN=token)
    assert second.stdout is not None
    while seen[-1] != ids[-1]:
        seen.append(json.loads(second.stdout.readline())["event"]["id"])
    second.send_signal(signal.SIGTERM)
    assert second.wait(20) == 143
    second.communicate()
    assert list(dict.fromkeys(seen)) == ids


def test_a_state_file_of_another_stream_is_refused(target: Target, tmp_path: Path) -> None:
    state = tmp_path / "tail.state"
    state.write_text(json.dumps({"url": "https://other.example/api/v2/events", "offset": "x"}))
    done = run("tail", *reached(target), "--state", str(state), EVENTS_TOKEN=target.token())
    assert done.returncode == 2, done.stderr
    assert "https://other.example" in done.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_with_a_summary(target: Target, number: signal.Signals, status: int) -> None:
    running = start("tail", *reached(target), "--json", "--verbose", EVENTS_TOKEN=target.token())
    assert running.stderr is not None
    said = b""
    while b"heartbeat" not in said:
        said += running.stderr.readline()
    ids = target.write("user.created")
    assert running.stdout is not None
    assert ids_in(running.stdout.readline().decode()) == ids
    running.send_signal(number)
    _, errors = running.communicate(timeout=20)
    assert running.returncode == status
    assert "1 event in" in errors.decode()
    assert "Traceback" not in errors.decode()


def test_a_closed_pipe_ends_the_command_without_an_error(target: Target) -> None:
    target.write(*some(400), padding=2000)
    tail = shlex.join(["manage.py", "events", "tail", *reached(target), "--since", "1h", "--json"])
    script = f'{shlex.quote(sys.executable)} {tail} | head -n 1; echo "${{PIPESTATUS[0]}}"'
    done = run_line(script, EVENTS_TOKEN=target.token())
    assert (done.stdout.splitlines()[1:], done.stderr) == (["0"], "")


def test_an_unknown_type_is_refused_with_similar_names(target: Target) -> None:
    done = run("tail", *reached(target), "--type", "user.create", "--type", "nothing", EVENTS_TOKEN="unused-token")
    assert done.returncode == 2
    assert "'user.create' is not an event type; similar types: user.created" in done.stderr
    assert "'nothing' is not an event type." in done.stderr


def test_missing_credentials_are_explained(target: Target) -> None:
    done = run("tail", *reached(target))
    assert done.returncode == 2
    assert "EVENTS_CLIENT_SECRET" in done.stderr


def test_a_wrong_token_is_refused_immediately(target: Target) -> None:
    done = run("tail", *reached(target), EVENTS_TOKEN="not-a-token-at-all")
    assert done.returncode == 3
    assert "401" in done.stderr
    assert "not-a-token-at-all" not in done.stderr


def test_an_expired_cursor_prints_instructions(target: Target) -> None:
    ids = target.write(*some(4))
    with target.subscribe({"from_timestamp": "2020-01-01T00:00:00Z"}) as stream:
        stream.opened()
        blocks = stream.events(4)
    # Prune like the retention: raise the floor, and delete the rows below it.
    Head.objects.filter(pk=target.tenant.pk).update(floor=2)
    LogEntry.objects.filter(tenant_id=target.tenant.pk, position__lte=2).delete()
    token = target.token()
    done = run("tail", *reached(target), "--from", str(blocks[0].id), "--json", "--max", "2", EVENTS_TOKEN=token)
    assert done.returncode == 4
    assert "no longer available" in done.stderr
    command = next(
        line.removeprefix("to read the remaining events: ")
        for line in done.stderr.splitlines()
        if line.startswith("to read the remaining events")
    )
    assert ids_in(run_line(command, EVENTS_TOKEN=token).stdout) == ids[2:]


def test_the_command_gives_up_if_the_server_stays_unreachable() -> None:
    with misbehaving(lambda _, wire: wire.hold()) as server:
        pass
    done = run("tail", server.url, "--give-up-after", "0.5", EVENTS_TOKEN="some-token")
    assert done.returncode == 5
    assert "cannot connect" in done.stderr


def test_no_output_contains_a_secret(tmp_path: Path) -> None:
    secret, token = "the-client-secret-0123456789", "the-issued-token-0123456789"

    def script(request: Request, wire: Wire) -> None:
        repeated = json.dumps({"statusCode": 400, "message": f"You said {token} and {secret}."}).encode()
        if request.path == "/oauth/token":
            wire.answer(200, json.dumps({"access_token": token}).encode())
        elif len(server.streams()) == 1:
            wire.stream(b":%b\n\n" % token.encode() + OPENING + frame(1))
        else:
            wire.answer(503 if len(server.streams()) == 2 else 400, repeated, "Retry-After: 0")

    file = tmp_path / "secret"
    file.write_text(secret)
    with misbehaving(script) as server:
        on_the_line = run("tail", server.url, "--verbose", "--client-id", "c", "--client-secret", secret)
        server.requests.clear()
        from_file = run("tail", server.url, "--verbose", "--client-id", "c", "--client-secret-file", str(file))
    for result in (on_the_line, from_file):
        assert result.returncode == 3
        assert "You said *** and ***." in result.stderr
        for text in (secret, token):
            assert text not in result.stdout + result.stderr
    assert "--client-secret " not in go_on_with(on_the_line.stderr)
    assert "--client-secret-file" in go_on_with(from_file.stderr)


def test_the_command_reads_the_service_of_the_checkout_if_no_url_is_given(target: Target, tmp_path: Path) -> None:
    def script(request: Request, wire: Wire) -> None:
        if request.path == "/oauth/token":
            wire.answer(200, b'{"access_token":"issued-by-the-demo"}')
        else:
            wire.stream(OPENING + frame(1))

    with misbehaving(script) as server:
        facts = {"base_url": f"{server.url}/api/v2", "client_id": "demo", "client_secret": "demo-secret"}
        (tmp_path / "up.json").write_text(json.dumps(facts))
        done = run("tail", "--once", "--json", DATA_DIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, '{"number":1}\n'), done.stderr
    assert b"client_id=demo" in server.requests[0].body


def test_the_command_that_resumes_has_every_option_that_was_given_and_no_secret() -> None:
    given = [
        "https://login.example.com/", "--token-file", "token", "--client-id", "reader", "--client-secret-file", "secret",
        "--audience", "https://api.example.com/", "--dpop", "--dpop-key-file", "key.pem", "--connect-to", "127.0.0.1:8000",
        "--ca-file", "ca.pem", "--allow-http", "--connect-timeout", "3", "--read-timeout", "30", "--type", "user.*", "--max", "5",
        "--json", "--verbose", "--once", "--give-up-after", "60",
    ]  # fmt: skip
    parser = CommandParser()
    add_arguments(parser)
    options = vars(parser.parse_args([*given, "--client-secret", "never-shown"]))

    command = resume_command(options, "offset-1")

    assert parser.parse_args(command[4:]) == parser.parse_args([*given, "--from", "offset-1"])
    assert "never-shown" not in command
