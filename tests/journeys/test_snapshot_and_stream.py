"""Runs the program and the commands of docs/how-to/snapshot-and-stream.md unchanged, while other threads write users."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.depth import sized
from tests.journeys.service import ROOT, Service, eventually

PAGE = (ROOT / "docs" / "how-to" / "snapshot-and-stream.md").read_text()


def block(language: str) -> str:
    """Return the code block of the page in this language. The page has exactly one such block."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def surroundings(service: Service, **more: str) -> dict[str, str]:
    facts = service.facts
    named = {"BASE_URL": facts["base_url"], "CLIENT_ID": facts["client_id"], "CLIENT_SECRET": facts["client_secret"]}
    return {"PATH": os.environ["PATH"], **named, **more}


@contextmanager
def mirroring(service: Service, program: Path, copy: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the program of the page during the `with` block. Then check that the program is still running, and kill it."""
    process = subprocess.Popen([sys.executable, program, copy], env=surroundings(service))
    try:
        yield process
        assert process.poll() is None
    finally:
        process.kill()
        process.wait(10)


def copied(copy: Path) -> dict[str, Any]:
    if not copy.exists():
        return {}
    with closing(sqlite3.connect(copy, timeout=10)) as reading:
        if not reading.execute("SELECT count(*) FROM sqlite_master WHERE name = 'users'").fetchone()[0]:
            return {}
        return {user_id: comparable(json.loads(document)) for user_id, document in reading.execute("SELECT user_id, document FROM users")}


def is_behind(copy: Path, service: Service) -> bool:
    """Report whether the copy lacks changes. A locked copy counts as lacking changes: the program was frozen while it wrote."""
    try:
        return copied(copy) != listed(service)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname != "SQLITE_BUSY":
            raise
        return True


def listed(service: Service) -> dict[str, Any]:
    """Return all users of the management interface, by user id."""
    found, query = [], {"take": "100"}
    while True:
        page = service.call("GET", "/users", params=query).json()
        found += page["users"]
        if "next" not in page:
            return {user["user_id"]: comparable(user) for user in found}
        query["from"] = page["next"]


def comparable(user: dict[str, Any]) -> dict[str, Any]:
    """Return the user without the members that change without an event."""
    return {name: value for name, value in user.items() if name not in {"updated_at", "last_password_reset"}}


class Writer:
    """A writer that creates, changes and deletes its own users until the event `is_over` is set."""

    def __init__(self, service: Service, number: int) -> None:
        self.service, self.number, self.count = service, number, 0
        self.random, self.mine = random.Random(number), list[str]()

    def write(self, is_over: threading.Event) -> None:
        while not is_over.is_set():
            act = self.random.choice((self.create, self.change, self.change, self.delete)) if len(self.mine) > 2 else self.create
            act()
            self.count += 1

    def create(self) -> None:
        self.mine.append(self.service.create_user(f"mirrored-{self.number}-{self.count}@example.test")["user_id"])

    def change(self) -> None:
        answer = self.service.call("PATCH", self.address(self.random.choice(self.mine)), {"given_name": f"Name {self.count}"})
        assert answer.status_code == 200, answer.text

    def delete(self) -> None:
        answer = self.service.call("DELETE", self.address(self.mine.pop(self.random.randrange(len(self.mine)))))
        assert answer.status_code == 204, answer.text

    @staticmethod
    def address(user_id: str) -> str:
        return f"/users/{quote(user_id, safe='')}"


@pytest.mark.sized
def test_the_program_keeps_a_copy_equal_to_the_tables_during_writes(service: Service, tmp_path: Path) -> None:
    program, copy = tmp_path / "mirror.py", tmp_path / "users.sqlite"
    program.write_text(block("python"))
    is_over = threading.Event()
    writers = [Writer(service, number) for number in range(3)]

    def more_is_written() -> None:
        wanted = sum(writer.count for writer in writers) + sized(15, deep=40)
        eventually(lambda: sum(writer.count for writer in writers) >= wanted, what="more changes")

    with ThreadPoolExecutor(len(writers)) as pool:
        writing = [pool.submit(writer.write, is_over) for writer in writers]
        try:
            more_is_written()
            with mirroring(service, program, copy) as process:
                eventually(lambda: copied(copy), what="the snapshot")
                more_is_written()
                # Freeze the program and then write changes, which it cannot read. The program is killed at the end of the `with` block.
                process.send_signal(signal.SIGSTOP)
                more_is_written()
                assert is_behind(copy, service)
            with mirroring(service, program, copy):
                more_is_written()
                is_over.set()
                for writer in writing:
                    writer.result()
                eventually(lambda: copied(copy) == listed(service), what="a copy that equals the list")
        finally:
            is_over.set()


def test_the_commands_show_the_list_and_then_the_later_events(service: Service, tmp_path: Path) -> None:
    environment = surroundings(service, TOKEN=service.token)
    command = ["bash", "-euc", block("sh")]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True) as shell:
        try:
            output = shell.stdout
            assert output is not None
            assert "offset-only" in next(line for line in output if line.startswith("event:"))
            listed_before = json.loads((tmp_path / "users.json").read_text())["users"]
            user = service.create_user("follows@example.test")
            shown = next(json.loads(line[5:]) for line in output if line.startswith("data:") and user["user_id"] in line)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)

    assert user["user_id"] not in {listed_user["user_id"] for listed_user in listed_before}
    assert shown["type"] == "user.created"
