"""Reads the parameters that only `/bc-authorize` has: the user, the message and the expiry (CIBA 7.1)."""

from __future__ import annotations

import re

import orjson

from authapi.failures import RequestRefused
from authapi.failures.ciba import CibaCase
from authapi.models.ciba import LONGEST_MESSAGE
from authapi.services.notifiers import EMAIL
from authapi.token_request import TokenRequest

SECONDS = 300
# Contract, 2.11: a request that is sent by mail may wait for three days.
_LONGEST_SECONDS = {EMAIL: 259_200}
# CIBA 7.1 requires exactly one hint. This service reads neither `id_token_hint` nor `login_hint_token`.
_OTHER_HINTS = ("login_hint_token", "id_token_hint")
_LONGEST_HINT = 1024
_LONGEST_CONTEXTS = 1024
_FORMAT = "iss_sub"
# Contract, 2.11. Spaces, line breaks and markup are refused, so that a message can neither be a sentence nor change the page.
_MESSAGE = re.compile(rf"[A-Za-z0-9+\-_.,:#]{{1,{LONGEST_MESSAGE}}}")


def user_id_of(request: TokenRequest) -> str:
    """Return the user id in `login_hint`; empty if the hint names another issuer, because this service has no users of that issuer.

    Raises `RequestRefused` for an invalid hint.
    """
    if any(request.text(name) is not None for name in _OTHER_HINTS):
        raise refused("Send login_hint, and no other hint.")
    sent = request.required("login_hint")
    if len(sent) > _LONGEST_HINT:
        raise refused(f"The login_hint is longer than {_LONGEST_HINT} characters.")
    try:
        hint = orjson.loads(sent)
    except orjson.JSONDecodeError as error:
        raise refused("The login_hint must be a JSON object.") from error
    if not isinstance(hint, dict) or hint.get("format") != _FORMAT:
        raise refused("The login_hint must be a JSON object with the format iss_sub.")
    issuer, subject = hint.get("iss"), hint.get("sub")
    if not (isinstance(issuer, str) and isinstance(subject, str) and issuer and subject):
        raise refused("The login_hint needs the texts iss and sub.")
    is_own = issuer.rstrip("/") == request.host.issuer.rstrip("/")
    return subject if is_own and "\x00" not in subject else ""


def binding_message_of(request: TokenRequest) -> str:
    """Return the message that the user compares with the message in the application. Raises `RequestRefused`."""
    message = request.required("binding_message")
    if _MESSAGE.fullmatch(message):
        return message
    reason = f"The binding_message has 1 to {LONGEST_MESSAGE} characters: letters and digits of ASCII, and + - _ . , : #."
    raise RequestRefused(CibaCase.BINDING_MESSAGE, reason=reason)


def seconds_of(request: TokenRequest, channel: str) -> int:
    """Return the seconds until the request expires. Raises `RequestRefused`."""
    sent = request.form.get("requested_expiry")
    if sent is None:
        return SECONDS
    longest = _LONGEST_SECONDS.get(channel, SECONDS)
    text = str(sent) if type(sent) is int else sent
    # Compare the length before the conversion: `int` raises an error for a very long text.
    if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= len(str(longest)) and 1 <= int(text) <= longest:
        return int(text)
    raise refused(f"The requested_expiry is a number of seconds from 1 to {longest}.")


def contexts_of(request: TokenRequest) -> str:
    """Return the preferred contexts of authentication, separated by spaces. Raises `RequestRefused`."""
    sent = " ".join((request.text("acr_values") or "").split())
    if len(sent) > _LONGEST_CONTEXTS or "\x00" in sent:
        raise refused(f"The acr_values are longer than {_LONGEST_CONTEXTS} characters.")
    return sent


def check_support(request: TokenRequest) -> None:
    """Raise `RequestRefused` for unsupported parameters that would change the request."""
    for name in ("request", "request_uri"):
        if request.text(name) is not None:
            raise refused("Signed authentication requests are not supported: send the parameters themselves.")
    if "openid" not in (request.text("scope") or "").split():
        raise RequestRefused(CibaCase.NO_OPENID)


def refused(reason: str) -> RequestRefused:
    return RequestRefused(CibaCase.INVALID_REQUEST, reason=reason)
