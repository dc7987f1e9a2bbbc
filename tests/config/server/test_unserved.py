"""Answers for unknown paths: JSON errors for programs, and pages for users."""

from __future__ import annotations

import json

import pytest

from identity.models import Tenant
from tests.authapi.browser import Browser

PATHS = ["/passwordless/next", "/mfa/nothing", "/ciba", "/oauth/token/", "/authorize/", "/x", "/u/nothing"]
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


def test_an_unknown_path_of_the_management_interface_gets_an_error_in_its_format(tenant: Tenant) -> None:
    answer = Browser(tenant).get("/api/v2/nothing-here", Accept="*/*")
    assert json.loads(answer.body)["statusCode"] == answer.status == 401
