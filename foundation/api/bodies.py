"""Parsers of request bodies: JSON, and forms with the same member names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import IO, Any, NoReturn
from urllib.parse import parse_qsl

from django.conf import settings
from rest_framework.parsers import BaseParser

from foundation.api.refusals import Refusal

_MOST_FORM_MEMBERS = 1000
_DEEPEST_FORM_MEMBER = 8
# `name[key][]` is a name, a key, and empty brackets, which mean a list.
_KEYS = re.compile(r"(?:^|\[)([^\[\]]*)")


class FormMembers(dict[str, Any]):
    """The members of a form body. Every value is text; the fields of the endpoint convert the text."""


class JsonBody(BaseParser):
    """`application/json`, as strict as RFC 8259: no `NaN`, no text after the value, bounded nesting."""

    media_type = "application/json"

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        body = _bounded(stream)
        if not body.strip():
            return {}
        try:
            return json.loads(body.decode(), parse_constant=_refuse_constant)
        except RecursionError as error:
            raise _malformed("JSON nested too deep") from error
        except ValueError as error:
            raise _malformed("Not valid JSON") from error


class FormBody(BaseParser):
    """`application/x-www-form-urlencoded`: lists as repeated members, objects as JSON text or as `name[key]`."""

    media_type = "application/x-www-form-urlencoded"

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> FormMembers:
        try:
            pairs = parse_qsl(_bounded(stream).decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FORM_MEMBERS)
        except ValueError as error:
            raise _malformed("Not a valid form") from error
        members = FormMembers()
        for name, value in pairs:
            _add(members, _KEYS.findall(name) or [name], value)
        return members


def _add(members: dict[str, Any], keys: list[str], value: str) -> None:
    name, *inner = keys
    if inner and inner[0]:
        nested = members.setdefault(name, {})
        if not isinstance(nested, dict) or len(inner) > _DEEPEST_FORM_MEMBER:
            raise _malformed("A form member with a name in brackets is nested too deeply, or its outer member already has a value")
        _add(nested, inner, value)
    elif name in members or inner:
        present = members.get(name, [])
        members[name] = [*present, value] if isinstance(present, list) else [present, value]
    else:
        members[name] = value


def _bounded(stream: IO[bytes]) -> bytes:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    body = stream.read(limit + 1)
    if len(body) > limit:
        raise Refusal(413, f"The body is larger than {limit} bytes.", "invalid_body")
    return body


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number.")


def _malformed(reason: str) -> Refusal:
    return Refusal(400, f"Payload validation error: '{reason}' on property body", "invalid_body")
