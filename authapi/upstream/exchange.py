"""HTTP requests to providers. Each request is sent by `outbound_session` and has one deadline; each answer must be JSON."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from foundation.outbound.outcomes import Answer, OutboundError
from foundation.outbound.session import outbound_session

MAX_DOCUMENT_BYTES = 256 * 1024
SECONDS = 5.0


class ProviderAnswer:
    """An answer with the attributes that Authlib's client reads."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.status_code = answer.status

    def json(self) -> Any:
        if len(self._answer.body) > MAX_DOCUMENT_BYTES:
            raise ValueError("The answer is too large.")
        return orjson.loads(self._answer.body)

    def raise_for_status(self) -> None:
        if self.status_code >= 400:
            raise ValueError(f"HTTP {self.status_code}")


class ProviderSession:
    """The HTTP session of Authlib's client, in place of a `requests` session. Uses `outbound_session`, and follows no redirects."""

    def __init__(self) -> None:
        self._deadline = time.monotonic() + SECONDS

    def post(self, url: str, *, data: Mapping[str, str], headers: Mapping[str, str], auth: Any) -> ProviderAnswer:
        """Post `data` as a form. Copies the headers, because the library shares one mapping for all requests and `auth` changes it."""
        url, sent, body = auth.prepare("POST", url, dict(headers), urlencode(data))
        return self.send("POST", url, headers=sent, body=body.encode())

    def get_json(self, url: str, *, token: str = "") -> dict[str, Any]:
        """Return the JSON object at an address. Raises `UpstreamFailed`."""
        document = self.get_value(url, headers={"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})})
        if not isinstance(document, dict):
            raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, f"{_place(url)} did not answer with a JSON object.")
        return document

    def get_value(self, url: str, *, headers: Mapping[str, str], absent: tuple[int, ...] = ()) -> Any:
        """Return the JSON value at an address; None if the status is in `absent`. Raises `UpstreamFailed`."""
        answer = self.send("GET", url, headers=headers, body=None)
        if answer.status_code in absent:
            return None
        if answer.status_code != 200:
            raise UpstreamFailed(LoginCase.UPSTREAM_UNREACHABLE, f"{_place(url)} answered {answer.status_code}.")
        try:
            return answer.json()
        except ValueError as error:
            raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, f"{_place(url)} did not answer with JSON.") from error

    def send(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None) -> ProviderAnswer:
        try:
            return ProviderAnswer(outbound_session().send(method, url, headers=headers, body=body, deadline=self._deadline))
        except OutboundError as error:
            raise UpstreamFailed(LoginCase.UPSTREAM_UNREACHABLE, f"{_place(url)}: {error}") from error


def _place(url: str) -> str:
    """Return a URL without its query, for the sign-in log: the query may contain secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an invalid address"
    return f"{parts.hostname or ''}{parts.path}"[:200]
