"""Records HTTP exchanges of a run, with secrets masked and long bodies truncated. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioning.runs.masking import Mask, one_line

MAX_BODY_CHARACTERS = 16 * 1024
_MAX_HEADERS = 50
_MAX_HEADER_CHARACTERS = 1024


@dataclass
class Exchange:
    """One request and its answer, unmasked; `failure` is the reason for a missing answer. Never show an exchange directly."""

    verb: str
    path: str
    request_headers: Mapping[str, str] = field(repr=False)
    request_body: bytes = field(repr=False)
    status: int | None = None
    response_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    response_body: bytes = field(default=b"", repr=False)
    failure: str = ""
    duration_ms: float = 0.0


class ExchangeRecorder:
    """Collects the exchanges of one run in order. Masks them only in `documents`: the exchanges of successful runs are rarely needed.

    The caller must pass a `path` whose filter contains no personal data.
    """

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self.exchanges: list[Exchange] = []

    def begin(self, verb: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Exchange:
        exchange = Exchange(verb, path, headers, body or b"")
        self.exchanges.append(exchange)
        return exchange

    def answered(self, exchange: Exchange, status: int, headers: Mapping[str, str], body: bytes, duration_ms: float) -> None:
        exchange.status = status
        exchange.response_headers = headers
        exchange.response_body = body
        exchange.duration_ms = duration_ms

    def failed(self, exchange: Exchange, failure: str, duration_ms: float) -> None:
        exchange.failure = failure
        exchange.duration_ms = duration_ms

    def documents(self) -> list[dict[str, Any]]:
        """Return every exchange as a JSON object without secrets."""
        return [self._document(exchange) for exchange in self.exchanges]

    def _document(self, exchange: Exchange) -> dict[str, Any]:
        return {
            "verb": exchange.verb,
            "path": self._mask.text(exchange.path),
            "request_headers": self._headers(exchange.request_headers),
            "request_body": self._body(exchange.request_body),
            "status": exchange.status,
            "response_headers": self._headers(exchange.response_headers),
            "response_body": self._body(exchange.response_body),
            "failure": one_line(self._mask.text(exchange.failure), 256),
            "duration_ms": exchange.duration_ms,
        }

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        kept = dict(list(headers.items())[:_MAX_HEADERS])
        return {one_line(name, 128): one_line(value, _MAX_HEADER_CHARACTERS) for name, value in self._mask.headers(kept).items()}

    def _body(self, body: bytes) -> str:
        # PostgreSQL text cannot contain NUL. Mask before truncating, so that no part of a secret remains.
        text = self._mask.text(body.decode("utf-8", errors="replace")).replace("\x00", "�")
        return text if len(text) <= MAX_BODY_CHARACTERS else text[:MAX_BODY_CHARACTERS] + f"… ({len(text)} characters)"
