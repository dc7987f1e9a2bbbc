"""Tests the example configurations for nginx and HAProxy, which send the hosts of moved tenants to another installation."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import requests

from tests.deadlines import eventually
from tests.peers.test_deployment import NGINX, listens
from tests.ports import free_port

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin")


@contextmanager
def answering(name: str) -> Iterator[int]:
    """Run a server that answers every request with its name, and yield its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(name)))
            self.end_headers()
            self.wfile.write(name.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def with_ports(text: str, *, here: int, there: int) -> str:
    text = re.sub(r"192\.0\.2\.1[01]:8001", f"127.0.0.1:{there}", text)
    return re.sub(r"127\.0\.0\.1:800[12]", f"127.0.0.1:{here}", text)


@contextmanager
def running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command)
    try:
        eventually(lambda: process.poll() is not None or listens(port))
        assert process.poll() is None
        yield
    finally:
        process.terminate()
        process.wait(10)


def placed(port: int) -> dict[str, str]:
    """Send a request for each host to the proxy. Return, by host, the name of the server that answered."""
    hosts = ("login.acme.example", "acme.example", "ACME.example:8443", "other.example")
    return {host: requests.get(f"http://127.0.0.1:{port}/", headers={"Host": host}, timeout=10).text for host in hosts}


EXPECTED = {"login.acme.example": "there", "acme.example": "there", "ACME.example:8443": "there", "other.example": "here"}


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed: make test-peers")
def test_nginx_sends_the_hosts_of_a_moved_tenant_to_the_new_installation(tmp_path: Path) -> None:
    with answering("here") as here, answering("there") as there:
        port = free_port()
        maps = with_ports((DEPLOY / "nginx" / "moved-tenants.conf").read_text(), here=here, there=there)
        upstream = with_ports((DEPLOY / "nginx" / "identity-upstream.conf").read_text(), here=here, there=there)
        server = f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://$identity_place; }} }}"
        configuration = tmp_path / "nginx.conf"
        configuration.write_text(
            f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/errors; events {{}}\n"
            f"http {{ access_log off; client_body_temp_path {tmp_path}/body; proxy_temp_path {tmp_path}/proxy;\n"
            f"{upstream}\n{maps}\n{server} }}\n"
        )
        command = [str(NGINX), "-e", str(tmp_path / "errors"), "-c", str(configuration)]
        check = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
        assert check.returncode == 0, check.stderr
        with running(command, port):
            assert placed(port) == EXPECTED


@pytest.mark.skipif(HAPROXY is None, reason="HAProxy is not installed: make test-peers")
def test_haproxy_sends_the_hosts_of_a_moved_tenant_to_the_new_installation(tmp_path: Path) -> None:
    with answering("here") as here, answering("there") as there:
        port = free_port()
        example = with_ports((DEPLOY / "haproxy" / "moved-tenants.cfg").read_text(), here=here, there=there)
        example = example.replace("bind :443 ssl crt /etc/identity/tls/identity.pem alpn h2,http/1.1", f"bind 127.0.0.1:{port}")
        example = example.replace("/etc/haproxy/moved-hosts", str(DEPLOY / "haproxy" / "moved-hosts.example"))
        # Lower the number of connections: a test may open fewer files than a service, and HAProxy refuses to start with too many
        # connections.
        example = example.replace("maxconn 20000", "maxconn 100")
        configuration = tmp_path / "haproxy.cfg"
        configuration.write_text(example)
        command = [str(HAPROXY), "-f", str(configuration)]
        check = subprocess.run([*command, "-c"], capture_output=True, text=True, check=False)
        assert check.returncode == 0, check.stdout + check.stderr
        with running([*command, "-db"], port):
            assert placed(port) == EXPECTED
