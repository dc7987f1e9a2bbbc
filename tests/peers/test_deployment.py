"""The files below `deploy/`, Dockerfile and compose.yaml, judged by the programs that are to read them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from config.launcher.peers import PLACE
from config.launcher.tls import ServerCertificate, server_certificate
from identity.models import Tenant
from tests.conformance.web_process import web_process
from tests.deadlines import eventually

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted(path for path in (DEPLOY / "systemd").iterdir() if path.suffix in {".service", ".target"})
NGINX = shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
JUDGES = PLACE / "python" / "bin"
# The greatest exposure that systemd may find: 0 is none, 10 is everything.
MOST_EXPOSED = 20

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def judge(program: str, *arguments: str) -> None:
    if not (JUDGES / program).exists():
        pytest.skip(f"{program} is not installed: make test-peers")
    said = subprocess.run([str(JUDGES / program), *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr


def test_the_linter_of_dockerfiles_finds_nothing() -> None:
    judge("hadolint", "--failure-threshold", "style", "Dockerfile")


def test_the_composition_keeps_to_the_specification() -> None:
    judge("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")


def test_the_image_holds_every_directory_that_a_running_service_imports() -> None:
    copied = set(re.findall(r"^COPY (\w+) \1$", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}

    assert copied == {"config", "identity", "authapi", "events", "provisioning", "static", "templates"}
    assert copied < allowed


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_systemd_takes_every_unit(unit: Path, tmp_path: Path) -> None:
    for each in UNITS:
        # The only thing that is not on this machine.
        text = each.read_text().replace("/opt/identity/current/.venv/bin/python", sys.executable)
        (tmp_path / each.name).write_text(text)
    named = unit.name.replace("@.", "@8001.")
    said = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(tmp_path / named)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.suffix == ".service"], ids=lambda path: path.name)
def test_the_processes_are_confined(unit: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(unit)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout


@pytest.fixture
def front(tenant: Tenant, tmp_path: Path) -> Iterator[tuple[str, ServerCertificate]]:
    """The nginx of `deploy/` before one web process that believes it; yields where it listens."""
    if NGINX is None:
        pytest.skip("nginx is not installed: make test-peers")
    certificate = server_certificate(tmp_path)
    with web_process("granian", INSECURE_HTTP="0", TRUSTED_PROXIES="127.0.0.1", LOCALHOST_TENANT=tenant.pk) as web:
        port, plain = free_port(), free_port()
        configuration = configured(tmp_path, certificate, port=port, plain=plain, upstream=web.address[1])
        check = subprocess.run([NGINX, "-t", "-e", str(tmp_path / "errors"), "-c", str(configuration)], capture_output=True, text=True)
        assert check.returncode == 0, check.stderr
        process = subprocess.Popen([NGINX, "-e", str(tmp_path / "errors"), "-c", str(configuration)])
        try:
            eventually(lambda: process.poll() is not None or listens(port))
            assert process.poll() is None, (tmp_path / "errors").read_text()
            yield f"localhost:{port}", certificate
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)


def configured(directory: Path, certificate: ServerCertificate, *, port: int, plain: int, upstream: int) -> Path:
    """Write the files of `deploy/nginx` with places and ports of this test, and nothing else changed."""
    places = {
        "/etc/identity/tls/fullchain.pem": str(certificate.chain),
        "/etc/identity/tls/privkey.pem": str(certificate.key),
        "/etc/identity/tls/client-authorities.pem": str(certificate.authority),
        "/etc/identity/edge-keys.map": str(DEPLOY / "nginx" / "edge-keys.map.example"),
        "/etc/nginx/": f"{DEPLOY / 'nginx'}/",
        "listen 443": f"listen 127.0.0.1:{port}",
        "listen 80": f"listen 127.0.0.1:{plain}",
        "127.0.0.1:8001": f"127.0.0.1:{upstream}",
        "127.0.0.1:8002": f"127.0.0.1:{upstream}",
    }
    for name in ("identity.conf", "identity-upstream.conf"):
        text = re.sub(r"^ *listen \[::\].*\n", "", (DEPLOY / "nginx" / name).read_text(), flags=re.MULTILINE)
        for ours, here in places.items():
            text = text.replace(ours, here)
        (directory / name).write_text(text)
    temporary = "".join(f"{name}_temp_path {directory}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.geteuid() == 0 else ""
    main = directory / "nginx.conf"
    main.write_text(
        f"{user} daemon off; pid {directory}/pid; events {{}} http {{ access_log off; {temporary} "
        f"include {directory}/identity.conf; include {directory}/identity-upstream.conf; }}"
    )
    return main


def test_behind_this_nginx_addresses_are_https_and_streams_are_not_collected(front: tuple[str, ServerCertificate]) -> None:
    authority, certificate = front

    def get(path: str, **options: object) -> requests.Response:
        return requests.get(f"https://{authority}{path}", verify=str(certificate.authority), timeout=20, **options)  # type: ignore[arg-type]

    assert get("/.well-known/openid-configuration").json()["issuer"] == f"https://{authority}/"
    refused = get("/api/v2/events", headers={"Accept-Encoding": "gzip"})
    assert (refused.status_code, json.loads(refused.text)["statusCode"]) == (401, 401)
    assert "Content-Encoding" not in refused.headers
    assert get("/metrics", headers={"Host": "elsewhere.example.test"}).status_code == 404


def test_what_a_client_claims_about_itself_goes_no_further(front: tuple[str, ServerCertificate]) -> None:
    authority, certificate = front
    claims = {"X-Forwarded-Proto": "http", "X-Forwarded-For": "203.0.113.7", "cname-api-key": "guess", "client-certificate": "x"}

    answer = requests.get(f"https://{authority}/.well-known/jwks.json", headers=claims, verify=str(certificate.authority), timeout=20)

    assert answer.status_code == 200


def test_mutual_tls_is_asked_for_on_hosts_of_the_edge_alone(front: tuple[str, ServerCertificate]) -> None:
    authority, certificate = front
    port = int(authority.partition(":")[2])

    assert not asks_for_certificate("localhost", port, certificate)
    assert asks_for_certificate("mtls.login.example.com", port, certificate)


def asks_for_certificate(host: str, port: int, certificate: ServerCertificate) -> bool:
    """Tell whether the server asks the client for a certificate, by the words of OpenSSL."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-servername", host, "-tls1_2"]
    said = subprocess.run(command, input="", capture_output=True, text=True, timeout=20, check=False).stdout
    assert "SSL-Session" in said, said
    return "No client certificate CA names sent" not in said


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
