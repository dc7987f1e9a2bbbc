"""The servers of other vendors, and a bare server of this project. All send the same bytes per event."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.stream.programs import Programs
from benchmarks.stream.subjects import Publisher, Shape, Starter, Subject, free_port, renumbered, running, web_options
from benchmarks.stream.usage import family
from config.launcher import web
from config.launcher.options import ROOT
from config.launcher.processes import Process

HERE = Path(__file__).parent
_ENVIRONMENT = ROOT / ".peers" / "stream"
_NCHAN_PACKAGES = ("nginx", "libnginx-mod-nchan")
_NCHAN_MODULE = Path("/usr/lib/nginx/modules/ngx_nchan_module.so")
# nginx with one worker, like one web process of ours. This server stores messages, and sends pings as often as we send heartbeats.
_NCHAN = """
load_module {module};
{user}
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid {directory}/nginx.pid;
error_log stderr error;
events {{ worker_connections 19000; }}
http {{
  access_log off;
  keepalive_requests 100000000;
  keepalive_timeout 3600;
  client_body_temp_path {directory}/bodies;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  nchan_shared_memory_size 256M;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location = /publish {{
      nchan_publisher;
      nchan_channel_id $arg_channel;
      nchan_message_buffer_length 200;
    }}
    location = /events {{
      nchan_subscriber eventsource;
      nchan_channel_id $arg_channel;
      nchan_subscriber_first_message newest;
      nchan_eventsource_ping_interval 15;
    }}
  }}
}}
"""


class NotInstalled(Exception):
    """A peer cannot be measured on this machine; the text says why."""


class HttpPeer:
    """A server that gets each event by a separate request."""

    def __init__(self, name: str, port: int, process: Process, publisher: Publisher, template: bytes, path: str) -> None:
        self.name = name
        self.address = ("127.0.0.1", port)
        self._process = process
        self._publisher = publisher
        self._template = template
        self._path = path

    def pids(self) -> list[int]:
        return family(self._process.pid)

    def requests(self, shape: Shape, *, own_tokens: bool = False) -> list[bytes]:
        query = self._path
        heads = [f"GET {query}?channel=c{channel} HTTP/1.1\r\nHost: localhost\r\n" for channel in range(shape.channels)]
        return [(head + "Accept: text/event-stream\r\n\r\n").encode() for head in heads for _ in range(shape.each)]

    def publish(self, channel: int, number: int, count: int = 1) -> float:
        bodies = [renumbered(self._template, mark) for mark in range(number, number + count)]
        return self._publisher.publish(f"/publish?channel=c{channel}", bodies)


class BareSender:
    """The C program that sends one frame to every stream; it has no channels."""

    name = "bare sender"

    def __init__(self, port: int, process: subprocess.Popen[str]) -> None:
        self.address = ("127.0.0.1", port)
        self._process = process

    def pids(self) -> list[int]:
        return [self._process.pid]

    def requests(self, shape: Shape, *, own_tokens: bool = False) -> list[bytes]:
        return [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"] * shape.streams

    def publish(self, channel: int, number: int, count: int = 1) -> float:
        """Send the frame. The program always sends the same bytes, so `channel` and `number` have no effect."""
        return self.told(f"send {count}")

    def told(self, command: str) -> float:
        """Send one command and wait until it is done; return the time of sending."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        started = time.monotonic()
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        self._process.stdout.readline()
        return started


def bare_sender(programs: Programs, frame: bytes) -> Starter:
    """Return a function that starts the bare sender. Raises `NotInstalled` without a C compiler."""
    program = programs.sender_program
    if program is None:
        raise NotInstalled("there is no C compiler")

    @contextmanager
    def start() -> Iterator[Subject]:
        port = free_port()
        path = programs.directory / "frame"
        path.write_bytes(frame)
        with subprocess.Popen(
            [str(program), str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                sender = BareSender(port, process)
                sender.told(f"frame {path}")
                yield sender
            finally:
                process.kill()

    return start


def nchan(template: bytes, directory: Path) -> Starter:
    """Return a function that starts nginx with nchan. Raises `NotInstalled`."""
    program = _nginx()

    @contextmanager
    def start() -> Iterator[Subject]:
        port = free_port()
        place = directory / f"nchan-{port}"
        place.mkdir()
        configuration = place / "nginx.conf"
        # As root, workers would change to an account that cannot enter the directory.
        user = "user root;" if os.geteuid() == 0 else ""
        configuration.write_text(_NCHAN.format(module=_NCHAN_MODULE, user=user, directory=place, port=port))
        command = [program, "-p", str(place), "-c", str(configuration), "-e", "stderr"]
        with (
            running("nchan", command, port, directory=place, environment=dict(os.environ)) as process,
            closing(Publisher(port)) as publisher,
        ):
            yield HttpPeer("nchan", port, process, publisher, template, "/events")

    return start


def eventstream(template: bytes, directory: Path) -> Starter:
    """Return a function that starts django-eventstream on uvicorn, from its own environment. Raises `NotInstalled`."""
    python = _eventstream_python()

    @contextmanager
    def start() -> Iterator[Subject]:
        port = free_port()
        command = [str(python), "-m", "uvicorn", "--port", str(port), "--no-access-log", "--log-level", "error", "--backlog", "4096"]
        command += ["--timeout-keep-alive", "3600"]
        command += ["--app-dir", str(HERE), "eventstream_site:application"]
        environment = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "eventstream_settings"}
        with (
            running("eventstream", command, port, directory=directory, environment=environment) as process,
            closing(Publisher(port)) as publisher,
        ):
            yield HttpPeer("django-eventstream", port, process, publisher, template, "/events")

    return start


def bare_application(template: bytes, directory: Path) -> Starter:
    """Return a function that starts the smallest streaming application on the web server of production, with the options of production."""

    @contextmanager
    def start() -> Iterator[Subject]:
        port = free_port()
        command = [*web.command(web_options(directory, port), None)[:-1], "benchmarks.stream.bare_application:application"]
        with (
            running("bare-application", command, port, directory=directory, environment=dict(os.environ)) as process,
            closing(Publisher(port)) as publisher,
        ):
            yield HttpPeer("bare application, uvicorn", port, process, publisher, template, "/events")

    return start


def _nginx() -> str:
    search = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    if (program := shutil.which("nginx", path=search)) and _NCHAN_MODULE.exists():
        return program
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NotInstalled(f"install it with: apt-get install {' '.join(_NCHAN_PACKAGES)}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-qq", "--yes", "--no-install-recommends", *_NCHAN_PACKAGES]):
        if subprocess.run(["apt-get", *command], env=quiet, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            raise NotInstalled(f"apt-get could not install {' '.join(_NCHAN_PACKAGES)}")
    found = shutil.which("nginx", path=search)
    if found is None or not _NCHAN_MODULE.exists():
        raise NotInstalled(f"{_NCHAN_MODULE} is missing")
    return found


def _eventstream_python() -> Path:
    lock, stamp, python = HERE / "requirements.lock", _ENVIRONMENT / "installed", _ENVIRONMENT / "bin" / "python"
    if stamp.exists() and stamp.read_text() == lock.read_text():
        return python
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--requirement", str(lock)]
    for command in ([sys.executable, "-m", "venv", "--clear", str(_ENVIRONMENT)], pip):
        if subprocess.run(command, check=False).returncode != 0:
            raise NotInstalled("pip could not install benchmarks/stream/requirements.lock")
    stamp.write_text(lock.read_text())
    return python
