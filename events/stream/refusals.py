"""Answers before the 200: one exception, and the body that every error of the management interface has. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

import orjson

Header = tuple[bytes, bytes]
BEARER = b"Bearer"


class Refused(Exception):
    """The request is answered with an error before any stream is opened."""

    def __init__(self, status: int, message: str, *, code: str | None = None, headers: Iterable[Header] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers = list(headers)

    def body(self) -> bytes:
        """Return `statusCode`, `error`, `message`, and `errorCode` where there is one."""
        document: dict[str, int | str] = {"statusCode": self.status, "error": HTTPStatus(self.status).phrase, "message": self.message}
        if self.code is not None:
            document["errorCode"] = self.code
        return orjson.dumps(document)


def unauthorized(message: str, *, presented: bool) -> Refused:
    """401; the challenge names an error only when a token was presented (RFC 6750, 3.1)."""
    challenge = BEARER + b' error="invalid_token"' if presented else BEARER
    return Refused(401, message, headers=[(b"www-authenticate", challenge)])


def insufficient_scope(scope: str) -> Refused:
    """403 for a token that lacks the scope (document, "Errors")."""
    challenge = BEARER + f' error="insufficient_scope", scope="{scope}"'.encode()
    message = f"Insufficient scope, expected any of: {scope}"
    return Refused(403, message, code="insufficient_scope", headers=[(b"www-authenticate", challenge)])


def unavailable(message: str, *, retry_after_seconds: int) -> Refused:
    """503 with the time after which another try makes sense."""
    return Refused(503, message, code="unavailable", headers=[(b"retry-after", str(retry_after_seconds).encode())])
