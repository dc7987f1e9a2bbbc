"""A private Valkey (or Redis) server: a Unix socket that only its owner can open, no TCP."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from urllib.parse import quote

from config.launcher.directories import make_private, socket_directory
from config.launcher.processes import NotReady, Program, is_running
from config.launcher.programs import MissingProgram, redis_servers

_PREVIOUS_SERVER_SECONDS = 30.0


def prepare(data_dir: Path, *, durable: bool) -> Program:
    """Return the program of a server whose data is in `data_dir`/redis; wait if an earlier server is shutting down.

    Raises `MissingProgram` with every place that was searched, and `NotReady` if another server keeps using the directory.
    """
    places = redis_servers()
    if not places.found:
        raise MissingProgram(f"No Redis protocol server was found. Tried: {'; '.join(places.tried)}. Or set REDIS_URL.")
    directory = make_private(data_dir / "redis")
    _wait_for_previous(directory)
    path = _socket(data_dir)
    command = [str(places.found[0]), "--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700"]
    command += ["--dir", str(directory), "--pidfile", str(directory / "server.pid"), "--daemonize", "no", "--loglevel", "warning"]
    # Without the append-only file, a restart would lose the queued nudges, and the deliveries of the demo would wait for the next sweep.
    command += ["--save", "", "--appendonly", "yes" if durable else "no"]
    return Program(name="redis", command=tuple(command), is_ready=lambda: _answers(path), ready_seconds=30.0)


def url_of(data_dir: Path) -> str:
    """Return the `REDIS_URL` of the private server whose data is below `data_dir`."""
    return f"unix://{quote(str(_socket(data_dir)))}?db=0"


def _socket(data_dir: Path) -> Path:
    return socket_directory(data_dir, "redis") / "redis.sock"


def _answers(path: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1.0)
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False


def _wait_for_previous(directory: Path) -> None:
    pid_file = directory / "server.pid"
    deadline = time.monotonic() + _PREVIOUS_SERVER_SECONDS
    while pid_file.exists():
        pid = pid_file.read_text().strip()
        if not pid.isdigit() or not (is_running(int(pid), mentions="valkey-server") or is_running(int(pid), mentions="redis-server")):
            pid_file.unlink(missing_ok=True)
            return
        if time.monotonic() > deadline:
            raise NotReady(f"A Redis server (process {pid}) still uses {directory}; stop it and start again.")
        time.sleep(0.05)
