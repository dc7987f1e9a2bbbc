"""Single logout (SAML core, 3.7; profiles, 4.4): requests of applications, requests of this service, and the answers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from authapi.protocols.saml.assertions import instant, name_id_element, saml, samlp
from authapi.protocols.saml.claims import NameId
from authapi.protocols.saml.names import OTHER_SPELLINGS, PARTIAL_LOGOUT, SUCCESS, UNSPECIFIED_NAME
from authapi.protocols.saml.requests import RequestUnusable, Sent, received
from authapi.protocols.saml.settings import SamlSettings
from authapi.xml.building import element
from authapi.xml.failures import XmlError
from authapi.xml.parsing import Element, child, children, text_of

# How long requests of this service are valid, and how long a request of an application is accepted after its `NotOnOrAfter`.
_LIFETIME = timedelta(minutes=5)
_MOST_INDEXES = 50


@dataclass(frozen=True)
class Participation:
    """The name and session index of a login, as sent to an application.

    A logout request of this service contains both. A logout request of an application must contain the name. If the requests of the
    application need no signature, the request must also contain the index, because an attacker could guess the name.
    """

    name_id: NameId
    session_index: str

    def state(self) -> dict[str, Any]:
        return {**vars(self.name_id), "session_index": self.session_index}

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> Participation:
        members = dict(state)
        return cls(session_index=members.pop("session_index"), name_id=NameId(**members))


@dataclass(frozen=True)
class LogoutRequest:
    """A logout request of an application. Without session indexes, the request ends every login of the user at that application."""

    id: str
    issuer: str
    destination: str
    name_id: NameId
    session_indexes: tuple[str, ...]

    def is_about(self, participation: Participation) -> bool:
        """Tell whether the request names this login: it has the same name, and either the same session index or no session index."""
        named, known = self.name_id, participation.name_id
        formats = (OTHER_SPELLINGS.get(named.format, named.format), known.format)
        # Some senders omit the format, or send "unspecified". Such a request matches every format.
        is_same_format = formats[0] in ("", UNSPECIFIED_NAME) or formats[0] == formats[1]
        is_named = not self.session_indexes or participation.session_index in self.session_indexes
        return is_same_format and named.value == known.value and is_named


@dataclass(frozen=True)
class LogoutAnswer:
    in_response_to: str
    issuer: str
    is_success: bool


def read_logout_request(sent: Sent, settings: SamlSettings, *, addresses: frozenset[str], now: datetime) -> LogoutRequest:
    """Return a checked logout request. Raises `RequestUnusable`."""
    try:
        root = received(sent, settings, "LogoutRequest")
        named = child(root, saml("NameID"))
        issuer = child(root, saml("Issuer"))
        if named is None or not root.get("ID"):
            raise RequestUnusable("The logout request has no ID, or names no user.")
        request = LogoutRequest(
            id=root.get("ID") or "",
            issuer="" if issuer is None else text_of(issuer),
            destination=root.get("Destination") or "",
            name_id=NameId(text_of(named), named.get("Format") or ""),
            session_indexes=tuple(text_of(each) for each in children(root, samlp("SessionIndex")))[:_MOST_INDEXES],
        )
    except XmlError as error:
        raise RequestUnusable(f"The logout request is refused: {error}") from error
    _check_destination(request.destination, addresses)
    _check_end(root.get("NotOnOrAfter"), now)
    return request


def read_logout_answer(sent: Sent, settings: SamlSettings, *, addresses: frozenset[str]) -> LogoutAnswer:
    """Return a checked answer to a request of this service. Raises `RequestUnusable`."""
    try:
        root = received(sent, settings, "LogoutResponse")
        status = child(root, samlp("Status"))
        code = None if status is None else child(status, samlp("StatusCode"))
        issuer = child(root, saml("Issuer"))
        answer = LogoutAnswer(
            in_response_to=root.get("InResponseTo") or "",
            issuer="" if issuer is None else text_of(issuer),
            # An inner status code means that the participant did not end all of its sessions.
            is_success=code is not None and code.get("Value") == SUCCESS and not len(code),
        )
    except XmlError as error:
        raise RequestUnusable(f"The logout response is refused: {error}") from error
    _check_destination(root.get("Destination") or "", addresses)
    return answer


def logout_request(*, issuer: str, address: str, request_id: str, participation: Participation, now: datetime) -> Element:
    """Return the request that asks a participant to end a login."""
    return element(
        samlp("LogoutRequest"),
        {
            "ID": request_id,
            "Version": "2.0",
            "IssueInstant": instant(now),
            "Destination": address,
            "NotOnOrAfter": instant(now + _LIFETIME),
        },
        element(saml("Issuer"), None, issuer),
        name_id_element(participation.name_id),
        element(samlp("SessionIndex"), None, participation.session_index) if participation.session_index else None,
    )


def logout_response(
    *,
    issuer: str,
    address: str,
    response_id: str,
    in_response_to: str,
    now: datetime,
    codes: tuple[str, ...] = (SUCCESS,),
    message: str = "",
) -> Element:
    """Return the answer to a request of an application."""
    outer, *inner = codes
    nested = element(samlp("StatusCode"), {"Value": inner[0]}) if inner else None
    text = element(samlp("StatusMessage"), None, message) if message else None
    return element(
        samlp("LogoutResponse"),
        {
            "ID": response_id,
            "Version": "2.0",
            "IssueInstant": instant(now),
            "Destination": address,
            "InResponseTo": in_response_to or None,
        },
        element(saml("Issuer"), None, issuer),
        element(samlp("Status"), None, element(samlp("StatusCode"), {"Value": outer}, nested), text),
    )


PARTLY = (SUCCESS, PARTIAL_LOGOUT)


def _check_destination(destination: str, addresses: frozenset[str]) -> None:
    if destination and destination.partition("?")[0] not in addresses:
        raise RequestUnusable(f"The Destination of the message is not the address of this service, {min(addresses)}.")


def _check_end(text: str | None, now: datetime) -> None:
    if not text:
        return
    try:
        ends = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        is_over = ends + _LIFETIME <= now
    except (ValueError, TypeError) as error:
        raise RequestUnusable("The NotOnOrAfter of the logout request is not a time in UTC.") from error
    if is_over:
        raise RequestUnusable("The logout request is too old. Compare the clocks of both servers.")
