"""What is kept of each HTTP exchange with a SCIM server: masked before it is kept, bodies cut. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from provisioning.masking import Mask, one_line

MAX_BODY_CHARACTERS = 16 * 1024
_MAX_HEADERS = 50
_MAX_HEADER_CHARACTERS = 1024


@dataclass
class Exchange:
    """One request and its answer; `failure` says why there is none."""

    verb: str
    path: str
    request_headers: dict[str, str]
    request_body: str
    status: int | None = None
    response_headers: dict[str, str] = field(default_factory=dict)
    response_body: str = ""
    failure: str = ""
    duration_ms: float = 0.0

    def as_document(self) -> dict[str, Any]:
        return asdict(self)


class ExchangeRecorder:
    """Keeps the exchanges of one run, in order. `path` is given by the caller, without personal data in its filter."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self.exchanges: list[Exchange] = []

    def begin(self, verb: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Exchange:
        exchange = Exchange(verb, self._mask.text(path), self._headers(headers), self._body(body or b""))
        self.exchanges.append(exchange)
        return exchange

    def answered(self, exchange: Exchange, status: int, headers: Mapping[str, str], body: bytes, duration_ms: float) -> None:
        exchange.status = status
        exchange.response_headers = self._headers(headers)
        exchange.response_body = self._body(body)
        exchange.duration_ms = duration_ms

    def failed(self, exchange: Exchange, failure: str, duration_ms: float) -> None:
        exchange.failure = one_line(self._mask.text(failure), 256)
        exchange.duration_ms = duration_ms

    def documents(self) -> list[dict[str, Any]]:
        return [exchange.as_document() for exchange in self.exchanges]

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        kept = dict(list(headers.items())[:_MAX_HEADERS])
        return {one_line(name, 128): one_line(value, _MAX_HEADER_CHARACTERS) for name, value in self._mask.headers(kept).items()}

    def _body(self, body: bytes) -> str:
        # PostgreSQL text holds no NUL. Masked before it is cut: half a secret is still a secret.
        text = self._mask.text(body.decode("utf-8", errors="replace")).replace("\x00", "�")
        return text if len(text) <= MAX_BODY_CHARACTERS else text[:MAX_BODY_CHARACTERS] + f"… ({len(text)} characters)"
