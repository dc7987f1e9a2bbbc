"""Three Redis protocol servers and three sentinels on loopback, with accounts (ACL) and optional TLS. Tests can kill and freeze them."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import redis

from config.launcher.processes import Process, Program, wait_until_ready
from config.launcher.programs import redis_servers
from config.launcher.tls import ServerCertificate, server_certificate
from tests.cluster.patroni import answers
from tests.deadlines import eventually
from tests.ports import free_port

MASTER = "identity"
# The account of the service. The service needs INFO, which Redis lists among the dangerous commands.
SERVICE = ("identity", "of-the-service")
PREFIX = "faults"
_RIGHTS = f"~{PREFIX}:* &{PREFIX}:* +@all -@admin -@dangerous +info"
_REPLICA = ("replica", "of-the-replicas")
_SENTINEL = ("watcher", "of-the-sentinels")
# The commands that the documentation of Sentinel lists for the account of the sentinels on the servers.
_WATCHING = (
    "allchannels +multi +slaveof +ping +exec +subscribe +config|rewrite +role +publish +info +client|setname +client|kill +script|kill"
)
# The account of clients on the sentinels.
ASKING = ("asking", "of-the-clients")
DOWN_SECONDS = 1.0


def encrypted_server() -> Path | None:
    """Return a server that supports TLS: Debian's redis-server, because the Valkey server in the wheel does not."""
    found = shutil.which("redis-server")
    return None if found is None else Path(found)


class RedisCluster:
    """A master, two replicas, and three sentinels that replace the master after a second without an answer."""

    def __init__(self, directory: Path, *, is_encrypted: bool) -> None:
        self.directory = directory
        directory.mkdir()
        self._program = encrypted_server() if is_encrypted else redis_servers().found[0]
        assert self._program is not None
        self.certificate: ServerCertificate | None = server_certificate(directory) if is_encrypted else None
        self._stack = ExitStack()
        self.ports = [free_port() for _ in range(3)]
        self.sentinel_ports = [free_port() for _ in range(3)]
        self.servers = [self._start_server(port) for port in self.ports]
        self.sentinels = [self._start_sentinel(port) for port in self.sentinel_ports]
        self.wait(self.is_whole)

    @property
    def url(self) -> str:
        """The `REDIS_URL` of the service."""
        places = ",".join(f"127.0.0.1:{port}" for port in self.sentinel_ports)
        tls = "" if self.certificate is None else f"&ssl_ca_certs={self.certificate.authority}"
        scheme = "redis" if self.certificate is None else "rediss"
        account = ":".join(SERVICE)
        return f"{scheme}+sentinel://{account}@{places}/{MASTER}/0?sentinel_username={ASKING[0]}&sentinel_password={ASKING[1]}{tls}"

    @property
    def master_port(self) -> int:
        """The master's port in the newest configuration, or 0 if no sentinel answers."""
        states = [self._state(port) for port in self.sentinel_ports]
        newest = max(states, key=lambda state: int(state.get("config-epoch", -1)))
        return int(newest.get("port", 0))

    def index_of_master(self) -> int:
        return self.ports.index(self.master_port)

    def is_whole(self) -> bool:
        """Tell whether all sentinels report one master, two replicas and two other sentinels, and both replicas follow the master."""
        states = [self._state(port) for port in self.sentinel_ports]
        if len({state.get("port") for state in states}) != 1 or any(
            (state.get("num-slaves"), state.get("num-other-sentinels"), state.get("flags")) != (2, 2, {"master"}) for state in states
        ):
            return False
        return self.role_of(self.ports.index(states[0]["port"])) == "master" and self._replica_count(states[0]["port"]) == 2

    def role_of(self, index: int) -> str:
        try:
            with self.client(self.ports[index]) as client:
                return str(client.info("replication")["role"])
        except redis.RedisError:
            return ""

    def client(self, port: int, account: tuple[str, str] = SERVICE) -> redis.Redis:
        tls: dict[str, Any] = {} if self.certificate is None else {"ssl": True, "ssl_ca_certs": str(self.certificate.authority)}
        return redis.Redis(
            host="127.0.0.1", port=port, username=account[0], password=account[1], socket_timeout=1, socket_connect_timeout=1, **tls
        )

    def kill(self, index: int) -> None:
        self.servers[index].kill()

    def start(self, index: int) -> None:
        """Start a killed server again, with its previous configuration."""
        self.servers[index] = self._run(
            f"server-{self.ports[index]}", [str(self.directory / f"{self.ports[index]}.conf")], self.ports[index]
        )

    def freeze(self, index: int) -> None:
        os.kill(self.servers[index].pid, signal.SIGSTOP)

    def thaw(self, index: int) -> None:
        os.kill(self.servers[index].pid, signal.SIGCONT)

    def wait(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        """Wait until the condition is true. If this takes too long, fail with the reports of the sentinels."""
        try:
            eventually(condition, seconds=seconds, pause=0.1)
        except AssertionError as error:
            raise AssertionError(str([self._state(port) for port in self.sentinel_ports])) from error

    def wait_for_another_master(self, old: int) -> float:
        """Wait until the sentinels report a master other than `old`. Return the waiting time in seconds."""
        started = time.monotonic()
        self.wait(lambda: self.master_port not in (0, self.ports[old]))
        return time.monotonic() - started

    def close(self) -> None:
        for process in (*self.sentinels, *self.servers):
            process.kill()

    def _state(self, port: int) -> dict[str, Any]:
        try:
            with self.client(port, ASKING) as client:
                state: dict[str, Any] = client.sentinel_masters().get(MASTER, {})
        except redis.RedisError:
            return {}
        return {**state, "flags": set(str(state.get("flags", "")).split(","))}

    def _replica_count(self, port: int) -> int:
        with self.client(port) as client:
            found = client.info("replication")
        return sum(found.get(f"slave{number}", {}).get("state") == "online" for number in range(2))

    def _start_server(self, port: int) -> Process:
        lines = [
            *self._network(port),
            *('save ""', f"dir {self.directory}", f"dbfilename {port}.rdb", "repl-diskless-sync-delay 0", "loglevel notice"),
            "user default off",
            f"user {SERVICE[0]} on >{SERVICE[1]} {_RIGHTS}",
            f"user {_REPLICA[0]} on >{_REPLICA[1]} +psync +replconf +ping",
            f"user {_SENTINEL[0]} on >{_SENTINEL[1]} {_WATCHING}",
            *(f"masteruser {_REPLICA[0]}", f"masterauth {_REPLICA[1]}"),
        ]
        if port != self.ports[0]:
            lines.append(f"replicaof 127.0.0.1 {self.ports[0]}")
        return self._run(f"server-{port}", [self._written(port, lines)], port)

    def _start_sentinel(self, port: int) -> Process:
        lines = [
            *self._network(port),
            *(f"dir {self.directory}", f"sentinel monitor {MASTER} 127.0.0.1 {self.ports[0]} 2"),
            *(f"sentinel auth-user {MASTER} {_SENTINEL[0]}", f"sentinel auth-pass {MASTER} {_SENTINEL[1]}"),
            f"sentinel down-after-milliseconds {MASTER} {int(DOWN_SECONDS * 1000)}",
            f"sentinel failover-timeout {MASTER} 5000",
            f"user {ASKING[0]} on >{ASKING[1]} -@all +auth +hello +client +ping +sentinel",
            # Other sentinels use this account.
            f"user {_SENTINEL[0]} on >{_SENTINEL[1]} allchannels +@all",
            "user default off",
            *(f"sentinel sentinel-user {_SENTINEL[0]}", f"sentinel sentinel-pass {_SENTINEL[1]}"),
        ]
        return self._run(f"sentinel-{port}", [self._written(port, lines), "--sentinel"], port)

    def _network(self, port: int) -> list[str]:
        bound = ["bind 127.0.0.1", "protected-mode no"]
        if self.certificate is None:
            return [*bound, f"port {port}"]
        files = self.certificate
        return [
            *(*bound, "port 0", f"tls-port {port}", "tls-replication yes", "tls-auth-clients no"),
            *(f"tls-cert-file {files.chain}", f"tls-key-file {files.key}", f"tls-ca-cert-file {files.authority}"),
        ]

    def _written(self, port: int, lines: list[str]) -> str:
        path = self.directory / f"{port}.conf"
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    def _run(self, name: str, arguments: list[str], port: int) -> Process:
        log = self.directory / f"{name}.log"
        program = Program(name, (str(self._program), *arguments), is_ready=lambda: answers(("127.0.0.1", port)))
        with log.open("ab") as output:
            process = Process.start(program, output=output)
        wait_until_ready(process, log=log)
        return process
