"""Answers for unknown paths, and while the database is unavailable: JSON errors for programs, and pages for users."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator

import pytest

from identity.models import Tenant
from tests.authapi.browser import Browser
from tests.conformance.web_process import WebProcess, web_process

PATHS = ["/", "/passwordless/next", "/mfa/nothing", "/ciba", "/oauth/token/", "/authorize/", "/x", "/u/nothing"]
# The test browser sends the headers of a navigation by default.
SCRIPT = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
SILENT = {"Sec-Fetch-Mode": "", "Sec-Fetch-Dest": ""}
HTML = "text/html,application/xhtml+xml,*/*;q=0.8"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_program_gets_an_error_object_that_scripts_may_read(tenant: Tenant, path: str, method: str) -> None:
    answer = Browser(tenant).send(method, path, body=b"{}", headers={"Content-Type": "application/json", "Accept": "*/*", **SILENT})
    assert (answer.status, answer.headers["content-type"]) == (404, "application/json")
    assert json.loads(answer.body) == {"error": "not_found", "error_description": "This service does not serve this address."}
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["x-ratelimit-limit"].isdigit()
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", PATHS)
def test_the_preflight_of_a_script_is_answered(tenant: Tenant, path: str) -> None:
    headers = {"Origin": "https://app.example.test", "Access-Control-Request-Method": "POST", "Accept": "*/*", **SCRIPT}
    answer = Browser(tenant).send("OPTIONS", path, headers=headers)
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (204, "*")
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize(
    ("headers", "is_page"),
    [
        ({"Accept": HTML, "Sec-Fetch-Mode": "navigate"}, True),
        ({"Accept": HTML, **SILENT}, True),
        ({"Accept": HTML, **SCRIPT}, False),
        ({"Accept": "application/json", **SILENT}, False),
        (SILENT, False),
    ],
)
def test_a_browser_gets_an_error_page(tenant: Tenant, headers: dict[str, str], is_page: bool) -> None:
    answer = Browser(tenant).send("GET", "/nothing-here", headers=headers)
    assert (answer.status, answer.headers["content-type"].startswith("text/html")) == (404, is_page)


def test_an_unknown_path_of_the_management_interface_gets_an_error_of_this_interface(tenant: Tenant) -> None:
    answer = Browser(tenant).get("/api/v2/nothing-here", Accept="*/*")
    assert json.loads(answer.body)["statusCode"] == answer.status == 401


@pytest.fixture(scope="module")
def without_database() -> Iterator[WebProcess]:
    address = "postgresql://identity@127.0.0.1:1/identity"
    with web_process("uvicorn", DATABASE_URL=address, PLATFORM_HOST="console.example.test") as running:
        yield running


def received(web: WebProcess, path: str, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection(*web.address, timeout=10)
    try:
        connection.request(method, path, headers={"Host": "console.example.test", **headers})
        answer = connection.getresponse()
        return answer, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/admin/", "/login", "/oidc/logout"])
@pytest.mark.parametrize("headers", [{"Accept": HTML}, {"Accept": HTML, "Sec-Fetch-Mode": "navigate"}])
def test_a_browser_gets_a_styled_page_with_advice_while_the_database_is_unavailable(
    without_database: WebProcess, path: str, headers: dict[str, str]
) -> None:
    answer, page = received(without_database, path, **headers)
    assert (answer.status, answer.headers["content-type"]) == (503, "text/html; charset=utf-8")
    assert (answer.headers["retry-after"], answer.headers["cache-control"]) == ("2", "no-store")
    assert "The database does not answer at present." in page
    assert "127.0.0.1" not in page
    for file in re.findall(r'href="(/static/[^"]+)"', page):
        assert received(without_database, file)[0].status == 200
    assert "/static/theme/errors.css" in page
    answer, page = received(without_database, path, "HEAD", **headers)
    assert (answer.status, page) == (503, "")
    assert int(answer.headers["content-length"]) > 0


@pytest.mark.parametrize(
    ("path", "headers", "member"),
    [
        ("/admin/", {"Accept": "*/*"}, "statusCode"),
        ("/admin/", {"Accept": HTML, "Sec-Fetch-Mode": "cors"}, "statusCode"),
        ("/api/v2/users", {"Accept": HTML, "Sec-Fetch-Mode": "navigate"}, "statusCode"),
        ("/oidc/logout", {"Accept": "application/json"}, "error_description"),
    ],
)
def test_a_program_gets_an_error_object_while_the_database_is_unavailable(
    without_database: WebProcess, path: str, headers: dict[str, str], member: str
) -> None:
    answer, body = received(without_database, path, **headers)
    assert (answer.status, answer.headers["retry-after"]) == (503, "2")
    assert member in json.loads(body)
