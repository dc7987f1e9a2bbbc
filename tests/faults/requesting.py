"""Sends requests of a client during a fault, records their status and duration, and checks that each refusal says when to try again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import requests

from tests.faults.invariants import History, Operation, key_of
from tests.faults.world import Seeded

_DEADLINE_SECONDS = 60.0
_TOKEN_REQUEST = {"grant_type": "client_credentials", "client_id": "unknown", "client_secret": "wrong", "audience": "x"}


@dataclass(frozen=True)
class Answered:
    """One response."""

    request: str
    status: int
    retry_after: str | None
    seconds: float
    text: str


@dataclass
class Requests:
    """A client of one tenant at one web process. The client stores its changes, so that a test can compare them with the log."""

    tenant: Seeded
    address: tuple[str, int]
    operations: list[Operation] = field(default_factory=list)

    def rename(self, user_id: str) -> Answered:
        """Set the nickname of a user to a value that no earlier call has set."""
        nickname, started = f"request {len(self.operations)}", time.monotonic()
        answer = self.send("PATCH", f"/api/v2/users/{user_id}", json={"nickname": nickname})
        outcome = "ok" if answer.status == 200 else "unknown" if "may have been saved" in answer.text else "fail"
        key = f"user.updated/{user_id}/{nickname}"
        self.operations.append(Operation(nickname, (key,), (user_id,), started, time.monotonic(), outcome))
        return answer

    def added_to(self, history: History) -> History:
        """Return the history with the changes of this client. A change whose response was lost counts as saved if the log contains it."""
        logged = {key_of(entry.event) for entry in history.log}
        saved = {one.id for one in self.operations if one.outcome == "ok" or (one.outcome == "unknown" and one.keys[0] in logged)}
        return replace(history, operations=[*history.operations, *self.operations], committed=set(history.committed) | saved)

    def one_of_each(self) -> list[Answered]:
        """Send requests to the management interface, the token endpoint, the key set, a hosted page, and the admin."""
        user = self.tenant.users[0]
        return [
            self.send("GET", f"/api/v2/users/{user}"),
            self.rename(user),
            self.send("POST", "/oauth/token", json=_TOKEN_REQUEST),
            self.send("GET", "/.well-known/jwks.json"),
            self.send("GET", "/authorize?client_id=unknown&response_type=code"),
            self.send("GET", "/admin/", host="localhost"),
            self.send("GET", "/admin/login/", host="localhost"),
        ]

    def send(self, method: str, path: str, *, host: str = "", **options: Any) -> Answered:
        headers = {"Host": host or self.tenant.host, "Authorization": f"Bearer {self.tenant.token}"}
        started = time.monotonic()
        url = f"http://{self.address[0]}:{self.address[1]}{path}"
        answer = requests.request(method, url, headers=headers, timeout=_DEADLINE_SECONDS, allow_redirects=False, **options)
        return Answered(f"{method} {path}", answer.status_code, answer.headers.get("Retry-After"), time.monotonic() - started, answer.text)


def assert_refused_politely(answers: list[Answered]) -> None:
    """Assert that no response is an internal error, and that each 503 has a time after which to retry."""
    wrong = [answer for answer in answers if answer.status >= 500 and (answer.status != 503 or not answer.retry_after)]
    assert not wrong, wrong
