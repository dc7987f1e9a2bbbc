"""Checks once, through public interfaces only, that a change of a user arrives in the event stream and in the SCIM server.

`make up` shows the measured times. Run as `python -m config.launcher.tour FACTS`, where FACTS is the path of a file with the members of
`up.json`. The last printed line is JSON.
"""

from __future__ import annotations

import http.client
import json
import secrets
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

_PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.1


class TourFailed(Exception):
    """A step failed; the message names the step."""


class Interface:
    """A client of one public interface. It adds the same headers to every request, and sends and reads JSON."""

    def __init__(self, base: str, headers: dict[str, str], ca_file: str | None) -> None:
        self._parts = urlsplit(base)
        self._headers = headers
        self._context = ssl.create_default_context(cafile=ca_file) if self._parts.scheme == "https" else None

    def open(self, method: str, path: str, body: Any = None) -> http.client.HTTPResponse:
        """Send a request and return the raw response. Raises `TourFailed` for a status of 400 or more."""
        host, port = self._parts.hostname or "", self._parts.port
        connection = (
            http.client.HTTPSConnection(host, port, timeout=_PATIENCE_SECONDS, context=self._context)
            if self._context
            else http.client.HTTPConnection(host, port, timeout=_PATIENCE_SECONDS)
        )
        content = None if body is None else json.dumps(body)
        typed = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, self._parts.path.rstrip("/") + path, content, {**self._headers, **typed})
        response = connection.getresponse()
        if response.status >= 400:
            said = " ".join(response.read(500).decode(errors="replace").split())
            raise TourFailed(f"{method} {path.partition('?')[0]} answered {response.status}: {said}")
        return response

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return the JSON of the response, None without a body."""
        with self.open(method, path, body) as response:
            content = response.read()
        return json.loads(content) if content else None


def walk(facts: dict[str, Any]) -> dict[str, float]:
    """Create a user, read its event, find it in the SCIM server, delete it again; return the times in milliseconds."""
    ca_file = facts.get("ca_file")
    sign_in = Interface(facts["auth_url"], {}, ca_file)
    token = sign_in.call("POST", "/oauth/token", _token_request(facts))["access_token"]
    management = Interface(facts["base_url"], {"Authorization": f"Bearer {token}"}, ca_file)
    scim = Interface(facts["scim_base_url"], {"Authorization": f"Bearer {facts['scim_bearer_token']}"}, None)

    with management.open("GET", "/events?event_type=user.created&event_type=user.deleted") as stream:
        events = _events(stream)
        # The first message shows that the stream is open. The service sends all later events on this stream.
        _next(events, lambda message: message["type"] == "offset-only", "the opening of /events")
        started = time.monotonic()
        user_id = management.call("POST", "/users", _user())["user_id"]
        try:
            _next(events, lambda message: _is_about(message, "user.created", user_id), "the event user.created")
            event_ms = (time.monotonic() - started) * 1000
            _wait(lambda: len(_found(scim, user_id)) == 1, "the user in the SCIM server")
            scim_ms = (time.monotonic() - started) * 1000
        finally:
            # Delete the user also after a failure, so that no test user remains.
            management.call("DELETE", f"/users/{quote(user_id, safe='')}")
        _next(events, lambda message: _is_about(message, "user.deleted", user_id), "the event user.deleted")
        _wait(lambda: not _found(scim, user_id), "the deletion in the SCIM server")
    return {"event_ms": event_ms, "scim_ms": scim_ms}


def _token_request(facts: dict[str, Any]) -> dict[str, str]:
    return {
        "grant_type": "client_credentials",
        "client_id": facts["client_id"],
        "client_secret": facts["client_secret"],
        "audience": f"{facts['base_url']}/",
    }


def _user() -> dict[str, str]:
    return {
        "connection": "people",
        "email": f"tour-{secrets.token_hex(6)}@example.com",
        "password": f"Tour-{secrets.token_urlsafe(18)}-7a",
        "given_name": "Tour",
        "family_name": "Guide",
    }


def _events(stream: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """Yield the JSON message of each `data:` line."""
    while line := stream.readline():
        if line.startswith(b"data:"):
            yield json.loads(line[5:])


def _next(events: Iterator[dict[str, Any]], wanted: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        for message in events:
            if wanted(message):
                return message
            if message["type"] == "error" or time.monotonic() > deadline:
                break
    except TimeoutError:
        # The error below reports a timeout in the same way as any other missing event.
        pass
    raise TourFailed(f"{what} did not arrive within {_PATIENCE_SECONDS:.0f} seconds")


def _is_about(message: dict[str, Any], kind: str, user_id: str) -> bool:
    return bool(message["type"] == kind and message["event"]["data"]["object"]["user_id"] == user_id)


def _found(scim: Interface, user_id: str) -> list[Any]:
    condition = quote(f'externalId eq "{user_id}"')
    resources: list[Any] = scim.call("GET", f"/Users?filter={condition}").get("Resources") or []
    return resources


def _wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TourFailed(f"{what} did not happen within {_PATIENCE_SECONDS:.0f} seconds")
        time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    try:
        print(json.dumps(walk(json.loads(Path(sys.argv[1]).read_text()))))
    except (TourFailed, OSError, http.client.HTTPException, ValueError, KeyError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
