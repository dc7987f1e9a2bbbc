"""Debian's RabbitMQ as a private server on loopback."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from config.launcher.processes import Process, Program, wait_until_ready
from tests.cluster.patroni import answers
from tests.ports import free_port

# The test does not use Debian's `/usr/sbin/rabbitmq-server`, because that command switches to the account of the package.
_PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_NAMES = Path("/usr/bin/epmd")
ACCOUNT = ("identity", "of-the-service")
VHOST = "identity"


class RabbitMQ:
    """One broker, and the name server that Erlang needs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port, self._names_port = free_port(), free_port()
        self._names = self._run(
            Program(
                "epmd",
                (str(_NAMES), "-address", "127.0.0.1", "-port", str(self._names_port)),
                is_ready=lambda: answers(("127.0.0.1", self._names_port)),
            )
        )
        self._server = self.start()

    @property
    def url(self) -> str:
        """The `BROKER_URL` of the service."""
        return f"amqp://{ACCOUNT[0]}:{ACCOUNT[1]}@127.0.0.1:{self.port}/{VHOST}"

    def start(self) -> Process:
        """Start the broker with the data of its previous run."""
        settings = [f"listeners.tcp.1 = 127.0.0.1:{self.port}", f"default_user = {ACCOUNT[0]}", f"default_pass = {ACCOUNT[1]}"]
        (self.directory / "rabbitmq.conf").write_text("\n".join([*settings, f"default_vhost = {VHOST}"]) + "\n")
        environment = {
            **os.environ,
            "HOME": str(self.directory),
            "RABBITMQ_CONFIG_FILE": str(self.directory / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.directory / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.directory / "data"),
            "RABBITMQ_LOG_BASE": str(self.directory),
            "RABBITMQ_NODENAME": "test@localhost",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_PORT": str(self._names_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        program = Program(
            "rabbitmq", (str(_PROGRAM),), is_ready=lambda: answers(("127.0.0.1", self.port)), environment=environment, ready_seconds=120.0
        )
        self._server = self._run(program)
        return self._server

    def kill(self) -> None:
        self._server.kill()

    def close(self) -> None:
        self._server.kill()
        self._names.kill()

    def _run(self, program: Program) -> Process:
        log = self.directory / f"{program.name}.log"
        with log.open("ab") as output:
            process = Process.start(program, output=output)
        wait_until_ready(process, log=log)
        return process


@contextmanager
def rabbitmq() -> Iterator[RabbitMQ]:
    """Run a broker until the end of the block; skip the test if Debian's package is not installed."""
    if not _PROGRAM.exists():
        pytest.skip("RabbitMQ is not installed; run `make peers`")
    with tempfile.TemporaryDirectory(prefix="rabbitmq-", ignore_cleanup_errors=True) as directory:
        running = RabbitMQ(Path(directory))
        try:
            yield running
        finally:
            running.close()
