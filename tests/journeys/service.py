"""Runs the whole service with `make up`, and uses only its public URLs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from tests.conformance.reader import StreamEnded, Subscriber

ROOT = Path(__file__).resolve().parents[2]
SERVER_VARIABLES = ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")


def eventually(condition: Callable[[], Any], *, seconds: float = 30, what: str = "the condition") -> Any:
    """Call `condition` until it returns a true value, and return the value. Fail after `seconds`; `what` names the expected state."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds:g} s for {what}, without success")


class Service:
    """A running service with its own data. `facts` is the content of `up.json`, such as URLs, credentials and process ids."""

    def __init__(self, data_dir: Path, port: int) -> None:
        self.data_dir = data_dir
        kept = {name: value for name, value in os.environ.items() if name not in SERVER_VARIABLES and not name.startswith("PYTEST")}
        for name in ("SESSION_KEYS", "ENCRYPTION_KEYS", "DIGEST_KEYS", "CURSOR_KEYS", "REDIS_PREFIX", "DATABASE_POOL"):
            kept.pop(name, None)
        for name in ("EVENTS_NUMBERER_ENABLED", "EVENTS_SWEEPER_ENABLED", "INSECURE_HTTP"):
            kept.pop(name, None)
        self.environment = {**kept, "DATA_DIR": str(data_dir), "PORT": str(port), "DETACH": "1", "RATE_LIMITS_ENABLED": "0"}

    def launcher(self, command: str, *, timeout: float = 150) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "config.launcher", command],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def up(self) -> None:
        done = self.launcher("up")
        assert done.returncode == 0, done.stdout + done.stderr
        self.block = done.stdout
        self._token = ""

    def down(self) -> None:
        self.launcher("down")

    @property
    def facts(self) -> dict[str, Any]:
        return dict(json.loads((self.data_dir / "up.json").read_text()))

    @property
    def token(self) -> str:
        if not self._token:
            facts = self.facts
            answer = requests.post(
                f"{facts['auth_url']}oauth/token",
                json={
                    "grant_type": "client_credentials",
                    "client_id": facts["client_id"],
                    "client_secret": facts["client_secret"],
                    "audience": f"{facts['base_url']}/",
                },
                timeout=10,
            )
            answer.raise_for_status()
            self._token = answer.json()["access_token"]
        return self._token

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> requests.Response:
        """Send a request to the management interface, with a valid token, and return the response."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return requests.request(method, f"{self.facts['base_url']}{path}", json=body, headers=headers, timeout=20, **options)

    def create_user(self, email: str, **profile: Any) -> dict[str, Any]:
        answer = self.call("POST", "/users", {"connection": "people", "email": email, "password": "Correct-Horse-7-Battery", **profile})
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    @contextmanager
    def events(self, **query: Any) -> Iterator[Subscriber]:
        """Open the event stream with the parameters `query`, and yield the subscriber.

        The stream is closed at the end of the `with` block.
        """
        host = self.facts["base_url"].removeprefix("http://").partition("/")[0]
        name, _, port = host.partition(":")
        headers = {"Host": host, "Authorization": f"Bearer {self.token}", "Accept": "text/event-stream"}
        subscriber = Subscriber((name, int(port)), headers=headers, query=query, deadline=30)
        try:
            assert subscriber.status == 200, subscriber.status
            yield subscriber
        finally:
            subscriber.close()

    def scim_users(self, user_id: str | None = None) -> list[dict[str, Any]]:
        """Return all users of the SCIM server, or only the users whose `externalId` is `user_id`."""
        facts = self.facts
        parameters = {"count": "1000", **({"filter": f"externalId eq {json.dumps(user_id)}"} if user_id else {})}
        headers = {"Authorization": f"Bearer {facts['scim_bearer_token']}"}
        answer = requests.get(f"{facts['scim_base_url']}/Users", params=parameters, headers=headers, timeout=10)
        answer.raise_for_status()
        return list(answer.json()["Resources"])

    def kill(self, *names: str) -> None:
        """Kill every process with one of these names, and wait until the supervisor has restarted the processes."""
        pids = self.facts["pids"]
        for name in names:
            for pid in pids[name]:
                os.kill(pid, signal.SIGKILL)

        def restarted() -> bool:
            now = self.facts["pids"]
            return all(now[name] and set(now[name]).isdisjoint(pids[name]) for name in names)

        eventually(restarted, what="the restart")

    def answers(self) -> bool:
        try:
            return requests.get(f"{self.facts['auth_url']}.well-known/openid-configuration", timeout=2).status_code == 200
        except requests.RequestException:
            return False

    def admin(self) -> requests.Session:
        """Return a session that has logged in to the admin with the credentials that `make up` printed."""
        facts = self.facts
        session = requests.Session()
        page = session.get(facts["admin_url"], timeout=20)
        answer = session.post(
            page.url,
            data={"username": facts["admin_user"], "password": facts["admin_password"], "csrfmiddlewaretoken": form_token(page.text)},
            headers={"Referer": page.url},
            timeout=20,
        )
        assert answer.status_code == 200, answer.status_code
        assert "logout" in answer.text
        return session


def form_token(page: str) -> str:
    """Return the CSRF token of the first form of a page."""
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert found, "the page has no form"
    return found.group(1)


def messages(subscriber: Subscriber, *, until: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Return the event messages up to the first message for which `until` returns true, including this message."""
    found: list[dict[str, Any]] = []
    while True:
        block = subscriber.block()
        if block.data and block.event not in {"offset-only", "error"}:
            found.append(block.message)
            if until(block.message):
                return found
        if block.event == "error":
            raise StreamEnded(block.data)
