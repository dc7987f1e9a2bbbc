"""Third-party proxies in front of one web process. Each proxy has a usual configuration and its own ports."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import free_port

Address = tuple[str, int]
_START_SECONDS = 20.0
# Also search the directories of system programs, which the PATH of ordinary users does not contain.
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


@dataclass(frozen=True)
class Running:
    """A running proxy: its URL for HTTP/1.1, and its URL for HTTP/2 without TLS, if it supports HTTP/2 without TLS."""

    address: Address
    address_of_http2: Address


@dataclass(frozen=True)
class Ports:
    """The ports and the directory that a configuration contains."""

    upstream: int
    http1: int
    http2: int
    directory: Path


def _nginx(ports: Ports, options: str) -> tuple[str, list[str]]:
    places = "".join(f"{name}_temp_path {ports.directory}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    # If nginx runs as root, its workers run as another user by default, and this user cannot enter the directory. So the configuration lets
    # the workers run as root, too.
    user = "user root;" if os.geteuid() == 0 else ""
    return (
        f"""{user} daemon off; worker_processes 1; pid {ports.directory}/pid; error_log {ports.directory}/errors;
        events {{ worker_connections 512; }}
        http {{ access_log off; {places} {options}
          server {{ listen 127.0.0.1:{ports.http1}; listen 127.0.0.1:{ports.http2} http2;
            location / {{ proxy_pass http://127.0.0.1:{ports.upstream}; proxy_set_header Host $host; }} }} }}""",
        ["nginx", "-e", str(ports.directory / "errors"), "-c"],
    )


def _haproxy(ports: Ports, options: str) -> tuple[str, list[str]]:
    return (
        f"""
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend front
  bind 127.0.0.1:{ports.http1}
  bind 127.0.0.1:{ports.http2} proto h2
  default_backend back
backend back
  {options}
  server service 127.0.0.1:{ports.upstream}
""",
        ["haproxy", "-db", "-f"],
    )


def _caddy(ports: Ports, options: str) -> tuple[str, list[str]]:
    sites = "".join(
        f"http://:{port} {{\n bind 127.0.0.1\n {options}\n reverse_proxy 127.0.0.1:{ports.upstream}\n}}\n"
        for port in (ports.http1, ports.http2)
    )
    return (
        f"{{\n admin off\n auto_https off\n servers {{\n protocols h1 h2c\n }}\n}}\n{sites}",
        ["caddy", "run", "--adapter", "caddyfile", "--config"],
    )


_GZIP = "gzip on; gzip_types *; gzip_proxied any; gzip_min_length 1;"
PROXIES: dict[str, Callable[[Ports], tuple[str, list[str]]]] = {
    # By default, nginx buffers responses and sends HTTP/1.0 requests to the service.
    "nginx": lambda ports: _nginx(ports, ""),
    "nginx that uses HTTP/1.1": lambda ports: _nginx(ports, "proxy_http_version 1.1; proxy_buffering on;"),
    "nginx that compresses": lambda ports: _nginx(ports, f"proxy_http_version 1.1; {_GZIP}"),
    "haproxy": lambda ports: _haproxy(ports, ""),
    "haproxy that compresses": lambda ports: _haproxy(ports, "compression algo gzip\n  compression type text/event-stream"),
    "caddy": lambda ports: _caddy(ports, ""),
    "caddy that encodes": lambda ports: _caddy(ports, "encode zstd gzip"),
}


@contextmanager
def proxy(name: str, upstream: Address) -> Iterator[Running]:
    """Run a proxy of `PROXIES`. Skip the test if its program is not installed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        directory = Path(place)
        ports = Ports(upstream[1], free_port(), free_port(), directory)
        configuration, command = PROXIES[name](ports)
        program = shutil.which(command[0], path=_PATH)
        if program is None:
            pytest.skip(f"{command[0]} is not installed: make test-peers")
        (directory / "configuration").write_text(configuration)
        homes = {"HOME": place, "XDG_DATA_HOME": place, "XDG_CONFIG_HOME": place}
        with (directory / "output").open("wb") as output:
            process = subprocess.Popen(
                [program, *command[1:], str(directory / "configuration")], env=os.environ | homes, stdout=output, stderr=output
            )
        try:
            running = Running(("127.0.0.1", ports.http1), ("127.0.0.1", ports.http2))
            _wait_until_it_listens(running, process, directory)
            yield running
        finally:
            process.terminate()
            process.wait(10)


def _wait_until_it_listens(running: Running, process: subprocess.Popen[bytes], directory: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(running.address) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"the proxy did not start:\n{(directory / 'output').read_text()[-2000:]}")
