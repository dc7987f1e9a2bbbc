"""Every accepted connection has the socket options that detect a dead peer."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from http.client import HTTPConnection

import pytest

from events.stream.listeners import OPTIONS, watch_over_readers
from tests.conformance.web_process import ROOT, SERVERS, _command
from tests.deadlines import eventually
from tests.ports import free_port


@pytest.mark.parametrize("server", SERVERS)
def test_the_kernel_sends_keepalive_probes_to_every_client_of_a_server(server: str) -> None:
    port = free_port()
    arguments = [sys.executable, "-m", *_command(server, port)[:-1], "tests.events.stream.socket_options:application"]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: _answer(port) == list(OPTIONS.values()), seconds=60.0)
        finally:
            process.terminate()


def test_only_listening_tcp_sockets_are_changed() -> None:
    before = watch_over_readers()
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as other, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", 0))
        assert watch_over_readers() == before + 1
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert other.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0


def _answer(port: int) -> object:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        body = answer.read()
        return json.loads(body) if answer.status == 200 else None
    except OSError:
        return None
    finally:
        connection.close()
