"""The files below `deploy/`, the Dockerfile and compose.yaml, checked with the programs that use these files."""

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
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from authapi.models import ClientCredential
from authapi.services.api_resources import ensure_management_api
from authapi.services.client_credentials import NewCredential, create_client_with_credentials
from authapi.services.client_grants import create_client_grant
from config.launcher.peers import PLACE
from config.launcher.tls import ServerCertificate, server_certificate
from identity.models import Tenant
from tests.authapi.assertions import private_key
from tests.authapi.certificates import certificate, edge_key
from tests.conformance.web_process import web_process
from tests.deadlines import eventually
from tests.factories.authapi import host_of
from tests.kustomize import built
from tests.ports import free_port

pytestmark = pytest.mark.peer

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted(path for path in (DEPLOY / "systemd").iterdir() if path.suffix in {".service", ".target"})
NGINX = shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
JUDGES = PLACE / "python" / "bin"
# The value of `--threshold` for systemd-analyze: ten times the highest allowed exposure level. So a unit may have at most level 2.0 of 10.
MOST_EXPOSED = 20

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def judge(program: str, *arguments: str) -> None:
    if not (JUDGES / program).exists():
        pytest.skip(f"{program} is not installed: make test-peers")
    said = subprocess.run([str(JUDGES / program), *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr


def test_the_dockerfile_linter_finds_no_fault() -> None:
    judge("hadolint", "--failure-threshold", "style", "Dockerfile")


def test_the_compose_file_follows_the_specification() -> None:
    judge("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")


@pytest.mark.parametrize("version", ["1.31", "1.37"])
@pytest.mark.parametrize("overlay", ["small", "large"])
def test_kubernetes_accepts_every_object(overlay: str, version: str, tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    secret = yaml.safe_load((DEPLOY / "kubernetes/secret.example.yaml").read_text())
    file.write_text(yaml.safe_dump_all([*built(DEPLOY / "kubernetes/overlays" / overlay), secret]))

    judge("kubernetes-validate", "--strict", "--quiet", "--kubernetes-version", version, str(file))


def test_the_image_contains_every_directory_that_a_running_service_imports() -> None:
    copied = set(re.findall(r"^COPY (\w+) \1$", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}

    assert copied == {"config", "foundation", "identity", "authapi", "events", "provisioning", "static", "templates", "locale"}
    assert copied < allowed


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_systemd_accepts_every_unit(unit: Path, tmp_path: Path) -> None:
    for each in UNITS:
        # The units name the Python interpreter of an installation, which does not exist on this machine. So replace its path. All other
        # files that the units name exist.
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
def test_systemd_restricts_the_processes(unit: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(unit)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout


@pytest.fixture
def front(tenant: Tenant, tmp_path: Path) -> Iterator[tuple[str, ServerCertificate]]:
    """Run nginx with the configuration in `deploy/` in front of a web process that trusts it. Yield host:port and the certificate."""
    if NGINX is None:
        pytest.skip("nginx is not installed: make test-peers")
    served = server_certificate(tmp_path)
    with web_process("uvicorn", INSECURE_HTTP="0", TRUSTED_PROXIES="127.0.0.1", LOCALHOST_TENANT=tenant.pk) as web:
        port, plain = free_port(), free_port()
        example = (DEPLOY / "nginx" / "edge-keys.map.example").read_text()
        (tmp_path / "edge-keys.map").write_text(f"{example}mtls.{host_of(tenant).host}  {edge_key(tenant)};\n")
        configuration = configured(tmp_path, served, port=port, plain=plain, upstream=web.address[1])
        with running_nginx(configuration, port):
            yield f"localhost:{port}", served


@contextmanager
def running_nginx(configuration: Path, port: int) -> Iterator[None]:
    errors = configuration.parent / "errors"
    command = [str(NGINX), "-e", str(errors), "-c", str(configuration)]
    check = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stderr
    process = subprocess.Popen(command)
    try:
        eventually(lambda: process.poll() is not None or listens(port))
        assert process.poll() is None, errors.read_text()
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def configured(directory: Path, served: ServerCertificate, *, port: int, plain: int, upstream: int) -> Path:
    """Write the files of `deploy/nginx`. Only their paths and ports are replaced by the paths and ports of this test."""
    places = {
        "/etc/identity/tls/fullchain.pem": str(served.chain),
        "/etc/identity/tls/privkey.pem": str(served.key),
        "/etc/identity/tls/client-authorities.pem": str(served.authority),
        "/etc/identity/edge-keys.map": str(directory / "edge-keys.map"),
        "/var/log/nginx/": f"{directory}/",
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
        f"{user} daemon off; pid {directory}/pid; events {{}} http {{ {temporary} "
        f"include {directory}/identity.conf; include {directory}/identity-upstream.conf; }}"
    )
    return main


def test_urls_are_https_and_streams_are_not_buffered_behind_nginx(front: tuple[str, ServerCertificate]) -> None:
    authority, served = front

    def get(path: str, **options: object) -> requests.Response:
        return requests.get(f"https://{authority}{path}", verify=str(served.authority), timeout=20, **options)  # type: ignore[arg-type]

    # nginx must replace these headers, which the client forges.
    claims = {"X-Forwarded-Proto": "http", "X-Forwarded-For": "203.0.113.7", "cname-api-key": "guess", "client-certificate": "x"}
    told = get("/.well-known/openid-configuration", headers=claims, allow_redirects=False)
    assert (told.status_code, told.json()["issuer"]) == (200, f"https://{authority}/")
    refused = get("/api/v2/events", headers={"Accept-Encoding": "gzip"})
    assert (refused.status_code, json.loads(refused.text)["statusCode"]) == (401, 401)
    assert "Content-Encoding" not in refused.headers
    assert get("/metrics", headers={"Host": "elsewhere.example.test"}).status_code == 404


def test_no_nginx_log_contains_a_token_from_a_url(tmp_path: Path) -> None:
    if NGINX is None:
        pytest.skip("nginx is not installed: make test-peers")
    served, port, token = server_certificate(tmp_path), free_port(), "s3cr3t-in-the-address"
    (tmp_path / "edge-keys.map").write_text("")
    # No server listens on the upstream port, so nginx logs each failure with the request line.
    configuration = configured(tmp_path, served, port=port, plain=free_port(), upstream=free_port())
    with running_nginx(configuration, port):
        for path in ("/userinfo", "/authorize"):
            address = f"https://localhost:{port}{path}?access_token={token}"
            answer = requests.get(address, headers={"Referer": address}, verify=str(served.authority), timeout=20)
            assert answer.status_code == 502
    written = (tmp_path / "identity.log").read_text()
    assert "GET /userinfo HTTP" in written
    assert "GET /authorize HTTP" in written
    assert token not in written
    failures = [line for name in ("errors", "identity-errors.log") for line in (tmp_path / name).read_text().splitlines()]
    assert any("/authorize" in line for line in failures), "nginx logs failures, so the next assertion would find one"
    assert not any("/userinfo" in line for line in failures)


def test_nginx_requests_client_certificates_only_at_hosts_with_the_prefix_mtls(front: tuple[str, ServerCertificate]) -> None:
    authority, _ = front
    port = int(authority.partition(":")[2])

    assert not asks_for_certificate("localhost", port)
    assert asks_for_certificate("mtls.login.example.com", port)


def test_a_client_authenticates_with_its_certificate_through_nginx(
    tenant: Tenant, front: tuple[str, ServerCertificate], tmp_path: Path
) -> None:
    own, host, port = certificate("first"), host_of(tenant).host, front[0].partition(":")[2]
    files = tmp_path / "client.pem", tmp_path / "client.key"
    for file, content in zip(files, (own, pem_of(private_key("first"))), strict=True):
        file.write_text(content)
    registered = NewCredential(type=ClientCredential.Type.X509_CERT, pem=own)
    methods = {"self_signed_tls_client_auth": [registered]}
    client = create_client_with_credentials(tenant_id=tenant.pk, name="Machine", methods=methods)
    api = ensure_management_api(tenant.pk)
    create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=api, scopes=["read:events"])

    def ask(name: str) -> dict[str, str]:
        command = [
            "curl",
            "--silent",
            "--insecure",
            "--resolve",
            f"{name}:{port}:127.0.0.1",
            "--cert",
            str(files[0]),
            "--key",
            str(files[1]),
        ]
        form = {"grant_type": "client_credentials", "client_id": client.client_id, "audience": f"https://{host}:{port}/api/v2/"}
        fields = [part for field, value in form.items() for part in ("--data-urlencode", f"{field}={value}")]
        said = subprocess.run([*command, *fields, f"https://{name}:{port}/oauth/token"], capture_output=True, text=True, check=True)
        return dict(json.loads(said.stdout))

    assert "access_token" in ask(f"mtls.{host}")
    assert "error" in ask(host)


def pem_of(key: RSAPrivateKey) -> str:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def asks_for_certificate(host: str, port: int) -> bool:
    """Connect with OpenSSL, and report whether the server requests a client certificate for this host."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-servername", host, "-tls1_2"]
    said = subprocess.run(command, input="", capture_output=True, text=True, timeout=20, check=False).stdout
    assert "SSL-Session" in said, said
    return "No client certificate CA names sent" not in said


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
