"""A cluster of three PostgreSQL servers under Patroni and etcd on loopback. Tests can kill, freeze and cut off its servers.

Each node has three proxies: for its clients, for its standbys, and between its Patroni and etcd. Cutting all three isolates the node
from the network.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from config.launcher import spawn
from config.launcher.peers import place_of
from config.launcher.processes import Process, Program, wait_until_ready
from config.launcher.programs import postgres_directories
from tests.faults.proxy import Address, Proxy
from tests.ports import free_port

DATABASE = "identity"
# The lowest values that Patroni accepts, in seconds. A standby is promoted when the leader's key in etcd has expired.
TTL_SECONDS = 20
_TIMES = {"ttl": TTL_SECONDS, "loop_wait": 1, "retry_timeout": 3}
PROMOTION_SECONDS = 60.0


class Node:
    """One PostgreSQL server with its Patroni, and its three proxies."""

    def __init__(self, name: str, directory: Path, etcd: Address, proxies: ExitStack) -> None:
        self.name = name
        self.directory = directory
        self.port, self.rest_port = free_port(), free_port()
        self.inward = proxies.enter_context(Proxy(("127.0.0.1", self.port)))
        self.replication = proxies.enter_context(Proxy(("127.0.0.1", self.port)))
        self.outward = proxies.enter_context(Proxy(etcd))
        self.process: Process | None = None
        self._etcd = etcd
        directory.mkdir()

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def state(self, path: str = "/patroni") -> dict[str, Any]:
        """Return the report of Patroni about its server as a mapping. The mapping is empty if Patroni does not answer."""
        try:
            with urlopen(f"http://127.0.0.1:{self.rest_port}{path}", timeout=2) as answer:
                document: dict[str, Any] = json.loads(answer.read())
        except (URLError, OSError, ValueError):
            return {}
        return document

    def cut_off(self) -> None:
        """Cut every connection of this node, and refuse new connections."""
        for proxy in (self.inward, self.replication, self.outward):
            proxy.targets = []
            proxy.reset_all()

    def reconnect(self) -> None:
        self.inward.targets = [("127.0.0.1", self.port)]
        self.replication.targets = [("127.0.0.1", self.port)]
        self.outward.targets = [self._etcd]

    def stop_replicating(self) -> None:
        """Stop sending data to the standbys, while clients can still commit."""
        self.replication.is_stalled = True

    def forget_unreplicated(self) -> None:
        """Drop data in transit to the standbys, and let the standbys connect again."""
        self.replication.reset_all()
        self.replication.is_stalled = False

    def processes(self) -> list[int]:
        """Return the process ids of Patroni, of PostgreSQL and of the children of PostgreSQL."""
        found = [] if self.process is None or self.process.has_ended() else [self.process.pid]
        with suppress(FileNotFoundError, IndexError):
            postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
            found.append(postmaster)
            with suppress(FileNotFoundError):
                found += map(int, Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split())
        return found

    def signal(self, number: signal.Signals) -> None:
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, number)


class Cluster:
    """Three nodes and one etcd. `is_synchronous` makes every commit wait for a standby."""

    def __init__(self, directory: Path, *, is_synchronous: bool, parameters: dict[str, str] | None = None) -> None:
        self.directory = directory
        self._is_synchronous = is_synchronous
        self._parameters = parameters or {}
        self._stack = ExitStack()
        self._etcd_address: Address = ("127.0.0.1", free_port())
        self._etcd = self._start(self._etcd_program())
        self._stack.callback(self._etcd.kill)
        self.nodes = [Node(f"node{number}", directory / f"node{number}", self._etcd_address, self._stack) for number in range(3)]
        self._stack.callback(self._stop_nodes)
        # The first node creates the cluster, and the other nodes copy the data of the first node.
        self.start(self.nodes[0])
        self.wait(lambda: self.leader is self.nodes[0])
        for node in self.nodes[1:]:
            self.start(node)
        self.wait(self.is_whole)

    @property
    def url(self) -> str:
        """The `DATABASE_URL` of the service, which names the proxy of every node."""
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        hosts = ",".join(f"127.0.0.1:{node.inward.address[1]}" for node in self.nodes)
        return f"postgresql://postgres@{hosts}/{database}?target_session_attrs=read-write&connect_timeout=2"

    @property
    def leader(self) -> Node | None:
        """The node that Patroni calls the primary and that holds the leader's key, or None if no node answers."""
        found = [node for node in self.nodes if node.inward.targets and node.state().get("role") in {"primary", "master"}]
        return found[0] if len(found) == 1 and found[0].state().get("state") == "running" else None

    def is_whole(self) -> bool:
        """Tell whether the cluster has a primary and two streaming standbys. In a synchronous cluster, one standby must be synchronous."""
        leader = self.leader
        if leader is None:
            return False
        standbys = [member for member in leader.state("/cluster").get("members", []) if member.get("role") != "leader"]
        is_safe = not self._is_synchronous or any(member.get("role") == "sync_standby" for member in standbys)
        return is_safe and [member.get("state") for member in standbys] == ["streaming", "streaming"]

    def leading(self) -> Node:
        """Wait for a primary, and return it."""
        self.wait(lambda: self.leader)
        leader = self.leader
        assert leader is not None
        return leader

    def start(self, node: Node) -> None:
        """Start Patroni, which starts PostgreSQL."""
        configuration = node.directory / "patroni.json"
        # Patroni reads YAML, and each JSON text is also valid YAML.
        configuration.write_text(json.dumps(self._configuration(node)))
        command = (str(place_of("patroni") / "bin" / "patroni"), str(configuration))
        # Patroni stops PostgreSQL before it exits. This can take a while.
        program = Program(node.name, command, identity=spawn.server_identity(), grace_seconds=20.0)
        node.process = self._start(program)

    def kill(self, node: Node) -> None:
        """Kill Patroni and PostgreSQL at the same time, as if the machine lost power."""
        node.signal(signal.SIGKILL)
        if node.process is not None:
            node.process.kill()

    def freeze(self, node: Node) -> None:
        node.signal(signal.SIGSTOP)

    def thaw(self, node: Node) -> None:
        node.signal(signal.SIGCONT)

    def switch_over(self) -> None:
        """Ask Patroni for a planned change of the primary."""
        leader = self.leader
        assert leader is not None
        body = json.dumps({"leader": leader.name}).encode()
        request = Request(f"http://127.0.0.1:{leader.rest_port}/switchover", data=body, headers={"Content-Type": "application/json"})
        with urlopen(request, timeout=60) as answer:
            assert answer.status == 200

    def wait(self, condition: Callable[[], object], seconds: float = PROMOTION_SECONDS) -> None:
        """Wait until the condition is true. A timeout fails with the report of every node."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, {node.name: node.state() for node in self.nodes}
            time.sleep(0.2)

    def wait_for_another_leader(self, old: Node) -> None:
        self.wait(lambda: self.leader not in (None, old))

    def close(self) -> None:
        self._stack.close()

    def _stop_nodes(self) -> None:
        for node in self.nodes:
            node.signal(signal.SIGCONT)
            self.kill(node)

    def _start(self, program: Program) -> Process:
        log = self.directory / f"{program.name}.log"
        with log.open("ab") as output:
            process = Process.start(program, output=output)
        wait_until_ready(process, log=log)
        return process

    def _etcd_program(self) -> Program:
        client, peer = f"http://127.0.0.1:{self._etcd_address[1]}", f"http://127.0.0.1:{free_port()}"
        command = ["etcd", "--name", "e", "--data-dir", str(self.directory / "etcd"), "--unsafe-no-fsync"]
        command += ["--listen-client-urls", client, "--advertise-client-urls", client]
        command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"e={peer}"]
        return Program("etcd", tuple(command), is_ready=lambda: answers(self._etcd_address))

    def _configuration(self, node: Node) -> dict[str, Any]:
        shared = {"log_min_messages": "fatal", "max_connections": "100", **self._parameters}
        password = {"password": "test"}
        return {
            "scope": "cluster",
            "name": node.name,
            "restapi": {"listen": f"127.0.0.1:{node.rest_port}", "connect_address": f"127.0.0.1:{node.rest_port}"},
            # Without this setting, Patroni discovers the addresses of etcd and bypasses the proxy.
            "etcd3": {"hosts": [f"127.0.0.1:{node.outward.address[1]}"], "use_proxies": True},
            "bootstrap": {
                "dcs": {
                    **_TIMES,
                    "synchronous_mode": self._is_synchronous,
                    "postgresql": {"use_pg_rewind": True, "parameters": shared},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{node.port}",
                "connect_address": f"127.0.0.1:{node.replication.address[1]}",
                "data_dir": str(node.data),
                "bin_dir": str(postgres_directories().found[0]),
                "pgpass": str(node.directory / "pgpass"),
                "authentication": {
                    "superuser": {"username": "postgres", **password},
                    "replication": {"username": "replicator", **password},
                    "rewind": {"username": "rewinder", **password},
                },
                # The socket is outside the data directory, because pg_rewind would try to copy it.
                "parameters": {"unix_socket_directories": str(node.directory)},
                "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
            },
        }


def answers(address: Address) -> bool:
    try:
        socket.create_connection(address, timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def cluster(directory: Path, *, is_synchronous: bool) -> Iterator[Cluster]:
    """Run a cluster in `directory`. The account of the servers must be able to traverse this directory."""
    running = Cluster(directory, is_synchronous=is_synchronous)
    try:
        yield running
    finally:
        running.close()
