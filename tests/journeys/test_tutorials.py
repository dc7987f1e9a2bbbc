"""Runs the commands of the tutorials of the manual exactly as they are printed, against a running service."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urljoin

import requests

from tests.following import follow
from tests.journeys.service import Service
from tests.ports import free_port

PASSWORD = "Correct-Horse-7-Battery"


def test_the_first_stream_tutorial_works(service: Service, tmp_path: Path) -> None:
    assert follow("first-stream", service, tmp_path) > 0


def test_the_tutorial_about_provisioning_to_a_scim_server_works(service: Service, tmp_path: Path) -> None:
    assert follow("provision-to-scim", service, tmp_path, instead={"9180": str(free_port())}) > 0


def test_the_tutorial_about_consuming_events_with_curl_works(service: Service, tmp_path: Path) -> None:
    assert follow("consume-events", service, tmp_path, section="With curl") > 0


def test_the_tutorial_about_consuming_events_in_python_works(service: Service, tmp_path: Path) -> None:
    assert follow("consume-events", service, tmp_path, section="In Python") > 0


def test_the_tutorial_about_logging_a_user_in_works(service: Service, tmp_path: Path) -> None:
    port = free_port()
    mary = Mary(f"http://localhost:{port}/")
    doings = {"log in": mary.logs_in, "fail": mary.fails, "log out": mary.logs_out}
    assert follow("log-a-user-in", service, tmp_path, doings=doings, instead={"3000": str(port)}) > 0


class Mary:
    """A user who opens the application of the tutorial in a browser."""

    def __init__(self, application: str) -> None:
        self.application = application
        self.browser = requests.Session()

    def logs_in(self) -> None:
        assert "You are not logged in." in self.page("")
        self.enter(PASSWORD)
        assert "Hello, Mary (mary@example.com)." in self.page("")

    def fails(self) -> None:
        somebody = Mary(self.application)
        somebody.enter("wrong")
        assert "You are not logged in." in somebody.page("")
        again = self.browser.get(f"{self.application}callback?code=used&state=of-before", timeout=20)
        assert (again.status_code, "The login did not work" in again.text) == (400, True)

    def logs_out(self) -> None:
        left = self.browser.get(f"{self.application}logout", timeout=20)
        assert left.url == self.application, left.url
        assert "You are not logged in." in left.text
        assert 'name="password"' in self.page("login")

    def page(self, path: str) -> str:
        return self.browser.get(f"{self.application}{path}", timeout=20).text

    def enter(self, password: str) -> None:
        """Open the login of the application, and submit the login page with this password."""
        page = self.browser.get(f"{self.application}login", timeout=20)
        fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))
        form = {**fields, "username": "mary@example.com", "password": password}
        self.browser.post(urljoin(page.url, "/u/login"), data=form, headers={"Referer": page.url}, timeout=30)
