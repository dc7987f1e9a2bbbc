"""Reads the parameters that a browser or a script sends to a front-channel endpoint: a query, a form, or a JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from django.http import HttpRequest

from authapi.edge.bodies import MalformedBody, parse_body
from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase

_JSON = "application/json"
# Parameters whose values are JSON. A JSON body contains these values as objects or arrays, not as text.
_STRUCTURED = frozenset({"authorization_details", "claims"})
# RFC 8707, 2: this parameter may be repeated.
_REPEATABLE = "resource"


def sent_pairs(request: HttpRequest) -> list[tuple[str, str]]:
    """Return each name with each of its values as text. Raises `RequestRefused` for JSON that is not an object of plain values.

    A page of another origin cannot send JSON with the cookies of a browser, because the service refuses the preflight request.
    """
    if request.method == "POST" and request.content_type == _JSON:
        return _json_pairs(request.body)
    sent = request.POST if request.method == "POST" else request.GET
    return [(name, value) for name, values in sent.lists() for value in values]


def _json_pairs(body: bytes) -> list[tuple[str, str]]:
    try:
        members = parse_body(_JSON, body)
    except MalformedBody as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=str(error)) from error
    return text_pairs(members)


def text_pairs(members: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the members of a body as texts. Raises `RequestRefused` for a value that is not plain."""
    # A member with the value `false` is treated as absent.
    return [(name, _text(name, value)) for name, value in _single(members) if value is not False]


def _single(members: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in members.items():
        if name == _REPEATABLE and isinstance(value, list):
            yield from ((name, each) for each in value)
        else:
            yield name, value


def _text(name: str, value: Any) -> str:
    if name in _STRUCTURED and isinstance(value, list | dict):
        return orjson.dumps(value).decode()
    if value is True:
        return "true"
    if isinstance(value, str | int):
        return str(value)
    raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The parameter {name[:64]} must be a string.")
