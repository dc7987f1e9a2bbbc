"""nginx as a proxy in front of a real server, with the directives of a test. Most installations use nginx as their proxy."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.deadlines import eventually
from tests.ports import free_port

PROGRAM = shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))

_CONFIGURATION = """
daemon off;
master_process off;
worker_processes 1;
pid {directory}/pid;
error_log {directory}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{upstream};
            proxy_set_header Host $http_host;
            {location}
        }}
    }}
}}
"""


@contextmanager
def nginx(upstream: int, location: str, directory: Path) -> Iterator[int]:
    """Run nginx as a proxy of the port `upstream`, with the directives `location`, and yield its port."""
    assert PROGRAM is not None
    port = free_port()
    configuration = directory / "nginx.conf"
    configuration.write_text(_CONFIGURATION.format(directory=directory, port=port, upstream=upstream, location=location))
    process = subprocess.Popen([PROGRAM, "-e", str(directory / "start.log"), "-p", str(directory), "-c", str(configuration)])
    try:
        eventually(lambda: process.poll() is not None or _listens(port))
        assert process.poll() is None, (directory / "start.log").read_text()
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
