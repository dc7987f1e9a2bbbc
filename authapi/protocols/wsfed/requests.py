"""Reads requests of applications in WS-Federation 1.2 (section 13, browsers). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.requests import RequestCase

SIGN_IN = "wsignin1.0"
SIGN_OUT = "wsignout1.0"
CLEAN_UP = "wsignoutcleanup1.0"
NAMES = (
    "wa", "wtrealm", "wreply", "wctx", "whr", "wfresh", "wauth", "wct", "wreq", "wreqptr", "connection", "organization", "invitation",
    "login_hint", "ui_locales",
)  # fmt: skip
REALM_PREFIX = "urn:"
# WS-Federation 1.2, 13.2.1: `wfresh` is in minutes. A value of more than a year is ignored.
_MOST_MINUTES = 366 * 24 * 60
_LONGEST: Mapping[str, int] = {"wctx": 16 * 1024, "wreply": 2048, "wtrealm": 1024}
_LONGEST_OTHER = 1024


@dataclass(frozen=True)
class SignIn:
    """A request for a token. A text is empty if the request does not contain it.

    `max_age` is in seconds: 0 requires a new login, None sets no limit. `factors` is the value of `wauth`.
    """

    realm: str
    reply: str
    context: str | None = field(default=None, repr=False)
    connection: str = ""
    organization: str = ""
    invitation: str = field(default="", repr=False)
    max_age: int | None = None
    factors: tuple[str, ...] = ()
    login_hint: str = ""
    ui_locales: str = ""

    def state(self) -> dict[str, Any]:
        """Return the request as JSON, to store it in the row of a login."""
        return {**vars(self), "factors": list(self.factors)}

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> SignIn:
        return cls(**{**state, "factors": tuple(state["factors"])})


def read_parameters(values: Mapping[str, list[str]]) -> dict[str, str]:
    """Return the known parameters that were sent. Raises `RequestRefused` for a repeated or too long parameter."""
    found = {}
    for name in NAMES:
        sent = values.get(name) or []
        if len(sent) > 1:
            raise RequestRefused(RequestCase.REPEATED_PARAMETER, parameter=name)
        if sent and len(sent[0]) > _LONGEST.get(name, _LONGEST_OTHER):
            raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The parameter {name} is too long.")
        if sent and sent[0]:
            found[name] = sent[0]
    return found


def client_realm(realm: str) -> str:
    """Return the client id of a realm such as `urn:<client id>`, empty for a realm of another form."""
    name = realm.removeprefix(REALM_PREFIX)
    return name if name != realm and name.isalnum() and name.isascii() and len(name) <= 64 else ""


def sign_in_of(parameters: Mapping[str, str], *, realm: str, callbacks: tuple[str, ...]) -> SignIn:
    """Return a checked request for a token. `realm` names the application. Raises `RequestRefused`.

    These errors are shown to the user, and are not sent to the reply URL of the request, which may be unregistered.
    """
    if parameters.get("wreq") or parameters.get("wreqptr"):
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The parameters wreq and wreqptr are not supported.")
    return SignIn(
        realm=realm,
        reply=reply_address(parameters.get("wreply", ""), callbacks),
        context=parameters.get("wctx"),
        connection=_connection(parameters),
        organization=parameters.get("organization", ""),
        invitation=parameters.get("invitation", ""),
        max_age=_max_age(parameters.get("wfresh")),
        factors=(parameters["wauth"],) if "wauth" in parameters else (),
        login_hint=parameters.get("login_hint", ""),
        ui_locales=parameters.get("ui_locales", ""),
    )


def reply_address(asked: str, callbacks: tuple[str, ...]) -> str:
    """Return the requested address for the token, which must equal a registered address.

    Without an address in the request, return the first callback. Raises `RequestRefused`. A callback with a wildcard is ignored, because
    tokens are posted to exact addresses only.
    """
    usable = [address for address in callbacks if "*" not in address and urlsplit(address).scheme in ("https", "http")]
    if not usable:
        raise RequestRefused(LoginCase.NO_CALLBACK)
    if not asked:
        return usable[0]
    if asked not in usable:
        raise RequestRefused(LoginCase.CALLBACK_MISMATCH, redirect_uri=asked[:200])
    return asked


def _connection(parameters: Mapping[str, str]) -> str:
    """Return the connection of a request: from `connection`, a parameter of this service, or from `whr=urn:<connection>`."""
    return parameters.get("connection") or parameters.get("whr", "").removeprefix(REALM_PREFIX)


def _max_age(wfresh: str | None) -> int | None:
    if wfresh is None:
        return None
    if not (wfresh.isascii() and wfresh.isdigit() and len(wfresh) <= 9):
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The parameter wfresh must be a number of minutes.")
    minutes = int(wfresh)
    return minutes * 60 if minutes <= _MOST_MINUTES else None


def client_sign_in(
    client_id: str, callbacks: tuple[str, ...], parameters: Mapping[str, str], *, connection: str, organization: str
) -> SignIn:
    """Return the request for a login that began at a provider, without a request of the application. Raises `RequestRefused`."""
    known = {name: parameters[name] for name in ("wreply", "wctx") if name in parameters}
    asked = sign_in_of(known, realm=f"{REALM_PREFIX}{client_id}", callbacks=callbacks)
    return replace(asked, connection=connection, organization=organization)
