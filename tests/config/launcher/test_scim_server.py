"""The SCIM server of the demo keeps written data when it is killed."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.config.launcher.polling import until
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[3]
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
USER: dict[str, Any] = {
    "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User", ENTERPRISE],
    "userName": "ada@example.com",
    "externalId": "database|1",
    "active": False,
    "name": {"givenName": "Ada"},
    "emails": [{"value": "ada@example.com", "type": "work", "primary": True}],
    ENTERPRISE: {"department": "Engines"},
}


class Client:
    def __init__(self, port: int) -> None:
        self.port = port

    def call(self, method: str, path: str, body: Any = None, token: str = "the-token") -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/scim+json"}
            connection.request(method, f"/v2{path}", json.dumps(body) if body else None, headers)
            response = connection.getresponse()
            content = response.read()
            return response.status, json.loads(content) if content else None
        finally:
            connection.close()

    def answers(self) -> bool:
        try:
            return self.call("GET", "/Users")[0] == 200
        except OSError:
            return False


@contextmanager
def running(directory: Path) -> Iterator[Client]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "config.launcher.scim_server", str(directory), str(port)],
        cwd=ROOT,
        env={**os.environ, "DEMO_SCIM_TOKEN": "the-token"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        client = Client(port)
        until(client.answers)
        yield client
    finally:
        process.kill()
        process.wait()


def test_a_killed_server_restarts_with_all_its_resources(tmp_path: Path) -> None:
    with running(tmp_path) as scim:
        kept = scim.call("POST", "/Users", USER)[1]
        gone = scim.call("POST", "/Users", {**USER, "userName": "gone@example.com"})[1]
        scim.call("PUT", f"/Users/{kept['id']}", {**USER, "active": True})
        assert scim.call("DELETE", f"/Users/{gone['id']}")[0] == 204
        before = scim.call("GET", f"/Users/{kept['id']}")[1]
    with running(tmp_path) as scim:
        status, found = scim.call("GET", "/Users?filter=" + quote('externalId eq "database|1"'))
        after = found["Resources"][0]
        assert status == 200
        assert found["totalResults"] == 1
        for volatile in (before, after):
            del volatile["meta"]["location"]
        assert after == before
        assert after["active"] is True
        assert after[ENTERPRISE]["department"] == "Engines"


def test_names_stay_unique_and_versions_still_increase_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as scim:
        first = scim.call("POST", "/Users", USER)[1]
    with running(tmp_path) as scim:
        assert scim.call("POST", "/Users", USER)[0] == 409
        second = scim.call("PUT", f"/Users/{first['id']}", {**USER, "active": True})[1]
        assert second["meta"]["version"] != first["meta"]["version"]


def test_a_wrong_token_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as scim:
        assert scim.call("GET", "/Users", token="another")[0] == 401
