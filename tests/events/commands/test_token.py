"""`manage.py events token` as a separate process, against real and misbehaving servers."""

from __future__ import annotations

import json
from pathlib import Path

from tests.events.client.misbehaving import Request, Wire, misbehaving
from tests.events.commands.conftest import run


def test_invalid_options_print_no_token() -> None:
    unbound = run("token", "https://id.example.com", "--dpop", EVENTS_TOKEN="some-token")
    assert (unbound.returncode, unbound.stdout) == (2, "")
    assert "--dpop-key-file" in unbound.stderr

    plain = run("token", "http://id.example.com", EVENTS_TOKEN="some-token")
    assert (plain.returncode, plain.stdout) == (5, "")
    assert "--allow-http" in plain.stderr


def test_a_refusal_prints_no_secret() -> None:
    def script(request: Request, wire: Wire) -> None:
        wire.answer(401, json.dumps({"error": "access_denied", "error_description": "You said the-client-secret-0123."}).encode())

    with misbehaving(script) as server:
        done = run("token", server.url, "--client-id", "c", "--client-secret", "the-client-secret-0123")
    assert (done.returncode, done.stdout) == (3, "")
    assert "You said ***." in done.stderr
    assert "the-client-secret-0123" not in done.stderr


def test_the_command_prints_a_token_of_the_client_of_the_checkout(tmp_path: Path) -> None:
    def script(request: Request, wire: Wire) -> None:
        wire.answer(200, b'{"access_token":"issued-by-the-demo"}')

    with misbehaving(script) as server:
        facts = {"base_url": f"{server.url}/api/v2", "client_id": "demo", "client_secret": "demo-secret"}
        (tmp_path / "up.json").write_text(json.dumps(facts))
        done = run("token", DATA_DIR=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "issued-by-the-demo\n", "")
    assert b"client_id=demo" in server.requests[0].body
