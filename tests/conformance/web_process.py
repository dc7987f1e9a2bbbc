"""Real web processes for tests: the application on uvicorn or on Daphne, on a separate port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from config.launcher.tls import ServerCertificate
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
SERVERS = ("uvicorn", "daphne")
_APPLICATION = "config.asgi:application"
_START_SECONDS = 40.0
_SHOWN_CHARACTERS = 4_000


class WebProcess:
    """A running server. `address` is its listening address. The Host header selects the tenant."""

    def __init__(self, server: str, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
        self.server = server
        self.address = ("127.0.0.1", port)
        self.process = process
        self.log = log

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the server with all its processes, like a machine failure."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait(self, *, within: float) -> int:
        return self.process.wait(timeout=within)

    def processes(self) -> list[int]:
        """Return the process ids of the server and of its children."""
        return [self.process.pid, *self._children()]

    def resident_bytes(self) -> int:
        """Return the memory of the server and its children."""
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.processes())
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _children(self) -> list[int]:
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in listed]


@contextmanager
def web_process(server: str, *, source: str | Path = ROOT, **environment: str) -> Iterator[WebProcess]:
    """Run a server with the code in `source`, and with the database and settings of the test. The server is always killed at the end."""
    with _running(server, None, environment, source) as web:
        yield web


@contextmanager
def tls_web_process(certificate: ServerCertificate, **environment: str) -> Iterator[WebProcess]:
    """Run uvicorn, which itself serves TLS with this certificate."""
    with _running("uvicorn", certificate, {"INSECURE_HTTP": "0"} | environment) as web:
        yield web


@contextmanager
def _running(
    server: str, certificate: ServerCertificate | None, environment: dict[str, str], source: str | Path = ROOT
) -> Iterator[WebProcess]:
    port = free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        log = Path(directory) / "output"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *_command(server, port, certificate)],
                cwd=source,
                env=os.environ | _environment() | environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        web = WebProcess(server, port, process, log)
        try:
            _wait_until_it_listens(web)
            yield web
        finally:
            # Kill the process group, which also contains the workers. If all its processes have ended, the group no longer exists.
            web.kill()
            # pytest shows these lines if the test fails.
            sys.stdout.write(log.read_text(errors="replace")[-_SHOWN_CHARACTERS:])


def _command(server: str, port: int, certificate: ServerCertificate | None = None) -> list[str]:
    name, _, workers = server.partition("-")
    match name:
        case "uvicorn":
            options = ["--host", "127.0.0.1", "--port", str(port), "--ws", "none", "--no-proxy-headers", "--no-access-log"]
            options += ["--http", "config.http_protocol:HttpProtocol", "--workers", workers or "1"]
            if certificate is not None:
                options += ["--ssl-certfile", str(certificate.chain), "--ssl-keyfile", str(certificate.key)]
            return ["uvicorn", *options, _APPLICATION]
        case _:
            return ["daphne", "-b", "127.0.0.1", "-p", str(port), "--verbosity", "0", _APPLICATION]


def _environment() -> dict[str, str]:
    database = connection.settings_dict
    user = quote(database["USER"] or "", safe="")
    password = f":{quote(database['PASSWORD'], safe='')}" if database["PASSWORD"] else ""
    host, port = database["HOST"] or "", database["PORT"] or ""
    # The host part of a URL cannot contain a socket directory, so a socket directory is in the query.
    address = f"@/{database['NAME']}?host={quote(host, safe='')}" if host.startswith("/") else f"@{host}:{port}/{database['NAME']}"
    return {
        "DJANGO_SETTINGS_MODULE": "config.settings.test",
        "DATABASE_URL": f"postgresql://{user}{password}{address}",
        "REDIS_URL": settings.REDIS_URL,
        "REDIS_PREFIX": settings.REDIS_PREFIX,
        "DATABASE_POOL": "1",
        "PYTHONUNBUFFERED": "1",
    }


def _wait_until_it_listens(web: WebProcess) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        if web.process.poll() is not None:
            break
        with socket.socket() as probe:
            probe.settimeout(1.0)
            if probe.connect_ex(web.address) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"{web.server} did not start:\n{web.log.read_text()}")
