"""The contents of a response and its assertion, as plain values without XML. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from authapi.upstream.saml.claims import Statement

BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
# XML Schema, 3.2.7. SAML Core 2.0, 1.3.3 requires UTC, but some providers send offsets.
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,20})?(Z|[+-]\d\d:\d\d)?")


class TimeUnreadable(ValueError):
    """A time is not in the form of XML Schema."""


@dataclass(frozen=True)
class Confirmation:
    """The conditions for presenting an assertion: who may present it, to which address, and until when (SAML Core 2.0, 2.4.1.2)."""

    method: str
    recipient: str = ""
    in_response_to: str = ""
    not_before: datetime | None = None
    not_on_or_after: datetime | None = None


@dataclass(frozen=True)
class Assertion:
    """A verified assertion."""

    id: str
    statement: Statement
    confirmations: tuple[Confirmation, ...] = ()
    not_before: datetime | None = None
    not_on_or_after: datetime | None = None
    # One tuple for each restriction. The assertion is for this service only if every restriction names this service.
    audiences: tuple[tuple[str, ...], ...] = ()
    authenticated_at: datetime | None = None
    session_ends_at: datetime | None = None
    has_authentication: bool = False


@dataclass(frozen=True)
class Response:
    """The parts of a response outside its assertion.

    Only signed parts are trusted. Unsigned parts are compared with the expected values, and the response is refused if they differ.
    """

    id: str
    issuer: str = ""
    destination: str = ""
    in_response_to: str = ""
    status_codes: tuple[str, ...] = ()
    status_message: str = ""
    is_signed: bool = False


def instant_of(text: str | None) -> datetime | None:
    """Return a time in UTC; None for None. Raises `TimeUnreadable`."""
    if text is None:
        return None
    match = _INSTANT.fullmatch(text.strip())
    if match is None:
        raise TimeUnreadable
    whole, fraction, zone = match.groups()
    try:
        # Python stores microseconds; .NET sends tenths of microseconds.
        moment = datetime.fromisoformat(f"{whole}{(fraction or '')[:7]}{zone or 'Z'}")
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise TimeUnreadable from error


def wire_instant(moment: datetime) -> str:
    """Return a time in the form of SAML: in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
