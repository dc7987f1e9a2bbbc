"""The failures of a client that reads a stream, each with a remedy: wait, fetch a new token, or stop. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

_SHOWN_CHARACTERS = 300


class Remedy(Enum):
    """What a client does after a failure."""

    WAIT = "wait"
    NEW_TOKEN = "new token"  # noqa: S105  (a remedy, no secret)
    STOP = "stop"


class StreamError(Exception):
    """The stream cannot be read; the text says why."""

    remedy = Remedy.WAIT
    retry_after: float | None = None


class Unreachable(StreamError):
    """The connection could not be opened, or was interrupted."""


class Untrusted(StreamError):
    """The server's certificate cannot be verified, or the client would have to send an invalid header, or a secret in plain text."""

    remedy = Remedy.STOP


class NoStream(StreamError):
    """The response has status 200 but is no event stream."""

    remedy = Remedy.STOP


class NoToken(StreamError):
    """The credentials do not lead to an access token."""

    remedy = Remedy.STOP


@dataclass(eq=False)
class Refused(StreamError):
    """A response with a status other than 200, and the members of its error document, if any."""

    status: int
    phrase: str
    body: bytes = field(repr=False)
    location: str | None = None
    retry_after: float | None = None

    def __post_init__(self) -> None:
        super().__init__(self.sentence)

    @property
    def document(self) -> dict[str, Any]:
        """Return the error document; an empty mapping if the body contains no document."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def code(self) -> str | None:
        """Return `errorCode` of the management interface or `error` of the authentication interface."""
        document = self.document
        found = document.get("errorCode") or (document.get("error") if "statusCode" not in document else None)
        return found if isinstance(found, str) else None

    @property
    def sentence(self) -> str:
        """Return one line with the status, the code and the message of the server."""
        document = self.document
        said = document.get("message") or document.get("error_description") or self.body.decode("utf-8", "replace")
        words = " ".join(printable(str(said)).split())[:_SHOWN_CHARACTERS]
        target = f" to {printable(self.location)}" if self.location else ""
        return f"{self.status} {self.phrase}{f' ({printable(self.code)})' if self.code else ''}{target}{': ' + words if words else ''}"

    @property
    def remedy(self) -> Remedy:  # type: ignore[override]  # the status decides, not the class
        if self.status == 401:
            return Remedy.NEW_TOKEN
        # A 403 with this code means that too many streams are open, which is temporary.
        if self.status in {408, 425, 429} or self.status >= 500 or self.code == "connection_limit":
            return Remedy.WAIT
        return Remedy.STOP


@dataclass(eq=False)
class Ended(StreamError):
    """The server ended the stream with an `error` message."""

    code: str
    message: str

    def __post_init__(self) -> None:
        super().__init__(f"{printable(self.code)}: {printable(self.message)}")

    @property
    def is_planned(self) -> bool:
        """Tell whether this is a planned end, after which the client reconnects."""
        return self.code == "connection_timeout"

    @property
    def remedy(self) -> Remedy:  # type: ignore[override]  # the code decides, not the class
        # With these codes, a new connection would end for the same reason: for example, an event that is too large stays too large.
        return Remedy.STOP if self.code in {"cursor_expired", "invalid_cursor", "payload_too_large"} else Remedy.WAIT


def ended_by(data: bytes) -> Ended:
    """Parse the data of an `error` message."""
    try:
        detail = json.loads(data)["error"]
        return Ended(str(detail["code"]), str(detail.get("message", "")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Ended("unknown", data[:_SHOWN_CHARACTERS].decode("utf-8", "replace"))


def printable(text: str) -> str:
    """Return text that is safe to show in a terminal: control characters and invisible characters are escaped."""
    return "".join(character if character.isprintable() else character.encode("unicode_escape").decode() for character in text)
