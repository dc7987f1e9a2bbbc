"""Error responses to a request for a stream. Their bodies have the form of all errors of the management interface. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus

import orjson

Header = tuple[bytes, bytes]
BEARER = b"Bearer"
EXPIRED_MESSAGE = "The cursor points to data no longer available in the stream."
_RESYNCHRONIZE = (
    "To resynchronize, read the resources again through the management interface, and resume from the cursor in the header "
    "`X-Events-Cursor` of the first page. `earliest_offset` is the earliest valid cursor. Events recorded before "
    "`earliest_time` were deleted."
)


class Refused(Exception):
    """The service refuses the request with an error response, before a stream opens."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        headers: Iterable[Header] = (),
        members: Mapping[str, str | None] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers = list(headers)
        self.members = members or {}

    def body(self) -> bytes:
        """Return `statusCode`, `error`, `message` and the additional members of this error. Includes `errorCode` if the error has a
        code."""
        document: dict[str, int | str | None] = {
            "statusCode": self.status,
            "error": HTTPStatus(self.status).phrase,
            "message": self.message,
        }
        if self.code is not None:
            document["errorCode"] = self.code
        return orjson.dumps({**document, **self.members})


def unauthorized(message: str, *, presented: bool) -> Refused:
    """Return a 401. The challenge contains an error only if the request had a token (RFC 6750, 3.1)."""
    challenge = BEARER + b' error="invalid_token"' if presented else BEARER
    return Refused(401, message, headers=[(b"www-authenticate", challenge)])


def insufficient_scope(scope: str) -> Refused:
    """Return a 403 for a token that lacks the scope (spec, "Errors")."""
    challenge = BEARER + f' error="insufficient_scope", scope="{scope}"'.encode()
    message = f"Insufficient scope, expected any of: {scope}"
    return Refused(403, message, code="insufficient_scope", headers=[(b"www-authenticate", challenge)])


def gone(earliest_offset: str, earliest_time: str | None) -> Refused:
    """Return a 410 with the earliest valid cursor. `earliest_time` is the recording time of the event after this cursor, or None."""
    return Refused(
        410,
        f"{EXPIRED_MESSAGE} {_RESYNCHRONIZE}",
        code="cursor_expired",
        members={"earliest_offset": earliest_offset, "earliest_time": earliest_time},
    )


def unavailable(message: str, *, retry_after_seconds: int) -> Refused:
    """Return a 503 with the number of seconds after which the client may retry."""
    return Refused(503, message, code="unavailable", headers=[(b"retry-after", str(retry_after_seconds).encode())])
