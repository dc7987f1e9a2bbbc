"""Runs unmodified third-party SCIM servers. These servers differ in the command that starts them, and in the way in which they list
users."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from config.launcher import spawn
from config.launcher.peers import PLACE, place_of
from config.launcher.peers import SERVERS as FOLDERS
from tests.factories.scim import TOKEN, RealServer
from tests.ports import free_port

# `SERVERS` find users by `externalId` as RFC 7644 requires. `ALL_SERVERS` also contains servers that do not.
SERVERS = ("scim2-server", "scimmy")
ALL_SERVERS = (*SERVERS, "django-scim2", "canaille", "jackson")

# For each running server, by its name: the file with its output, for the report of a failed test.
outputs: dict[str, Path] = {}

_LONGEST_START_SECONDS = 120.0


@dataclass(frozen=True)
class Program:
    """The command that starts a server, its SCIM base URL, and additional environment variables."""

    command: list[str]
    base_url: str
    environment: Mapping[str, str]


class UnpagedServer(RealServer):
    """A server whose users are read in one request, because it does not support pages: Canaille 0.3.6 answers 500 to `count`."""

    def users(self) -> list[dict[str, Any]]:
        answer = requests.get(f"{self.base_url}/Users", headers={"Authorization": f"Bearer {self.token}"}, timeout=10).json()
        assert len(answer["Resources"]) == answer["totalResults"]
        return sorted(answer["Resources"], key=lambda user: str(user["id"]))


@contextmanager
def running(name: str) -> Iterator[RealServer]:
    """Run the named server on a free port until the end of the block. Skip the test if the server is not installed."""
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        program = _PROGRAMS[name](free_port(), folder)
        outputs[name] = Path(folder) / "output.log"
        with _process(program, outputs[name]) as process:
            server = (UnpagedServer if name == "canaille" else RealServer)(program.base_url, name=name)
            _wait_until_ready(server, process, outputs[name])
            yield server
            # If tests of two folders ran the same server at the same time in one pytest worker, one of them has already removed the entry.
            outputs.pop(name, None)


@contextmanager
def _process(program: Program, output: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "SCIM_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1", **program.environment}
    with output.open("wb") as file:
        # The kernel kills the server when the process of the tests ends, even if that process is killed.
        process = spawn.start(program.command, environment=environment, directory=output.parent, output=file, death_signal=signal.SIGKILL)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=5)


def _wait_until_ready(server: RealServer, process: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + _LONGEST_START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, f"{server.name} ended with {process.returncode}: {output.read_text(errors='replace')}"
        try:
            assert server.users() == []
        except requests.RequestException:
            threading.Event().wait(0.05)
        else:
            return
    raise AssertionError(f"{server.name} does not answer: {output.read_text(errors='replace')}")


def _scim2_server(port: int, folder: str) -> Program:
    command = [str(Path(sys.executable).with_name("scim2-server")), "--bearer-token", TOKEN, "--hostname", "127.0.0.1", "--port", str(port)]
    return Program(command, f"http://127.0.0.1:{port}/v2", {})


def _scimmy(port: int, folder: str) -> Program:
    driver = Path(__file__).parent / "drivers" / "scimmy_server.js"
    return _node_program("scimmy", PLACE / "node_modules", "scimmy", driver, port)


def _jackson(port: int, folder: str) -> Program:
    modules = place_of("jackson") / "node_modules"
    return _node_program("saml-jackson", modules, "@boxyhq/saml-jackson", FOLDERS / "jackson" / "serve.cjs", port)


def _node_program(name: str, modules: Path, package: str, driver: Path, port: int) -> Program:
    node = shutil.which("node")
    if node is None or not (modules / package).exists():
        pytest.skip(f"{name} is not installed: make test-peers")
    return Program([node, str(driver), str(port)], f"http://127.0.0.1:{port}/scim/v2", {"NODE_PATH": str(modules)})


def _django_scim2(port: int, folder: str) -> Program:
    return _python_program("django_scim2", port, folder)


def _canaille(port: int, folder: str) -> Program:
    return _python_program("canaille", port, folder)


def _python_program(name: str, port: int, folder: str) -> Program:
    place = place_of(name)
    if not (place / "installed").exists():
        pytest.skip(f"{name} is not installed: make test-peers")
    command = [str(place / "bin" / "python"), str(FOLDERS / name / "serve.py"), str(port), folder]
    # The server is another Django project, so it must not get the settings of this project.
    return Program(command, f"http://127.0.0.1:{port}/scim/v2", {"DJANGO_SETTINGS_MODULE": "", "PYTHONPATH": ""})


_PROGRAMS: dict[str, Callable[[int, str], Program]] = {
    "scim2-server": _scim2_server,
    "scimmy": _scimmy,
    "django-scim2": _django_scim2,
    "canaille": _canaille,
    "jackson": _jackson,
}
