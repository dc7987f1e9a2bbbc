"""Checks messages before a worker accepts them from its queue: a message must have the shape that processes of this service write.

Redis has no permissions per queue: a process with write access can write anything. Celery itself refuses pickled bodies and unknown
names. But an unexpected header ends the worker, a compressed body fills its memory, and a malformed message stays unacknowledged and
occupies the place of a valid message. So the transports (`config.task_transports`) drop such messages before Celery reads them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Container
from datetime import datetime
from typing import Any

import orjson

from config.settings.queue import TASK_SECONDS

# The maximum size of a body. It is large enough, because all arguments are ids.
MAX_BODY_BYTES = 64 * 1024
_LONGEST_TEXT = 4096
_LONGEST_ID = 255
_MOST_RETRIES = 1_000_000


def is_task_message(message: Any, names: Container[str]) -> bool:
    """Tell whether a message, parsed as JSON, calls one of the tasks in `names`, and has the form that processes of this service write."""
    if not isinstance(message, dict):
        return False
    kinds = (message.get("content-type"), message.get("content-encoding"))
    headers, properties = message.get("headers"), message.get("properties")
    if kinds != ("application/json", "utf-8") or not isinstance(headers, dict) or not isinstance(properties, dict):
        return False
    return _are_headers(headers, names) and _are_properties(properties) and _is_body(message.get("body"))


def _are_headers(headers: dict[str, Any], names: Container[str]) -> bool:
    name, retries = headers.get("task"), headers.get("retries", 0)
    # Refuses Celery's own tasks, which can run other tasks. No process of the service calls them.
    if (
        not isinstance(name, str)
        or name not in names
        or name.startswith("celery.")
        or not _is_id(headers.get("id"))
        or headers.get("compression")
    ):
        return False
    if not isinstance(retries, int) or isinstance(retries, bool) or not 0 <= retries <= _MOST_RETRIES:
        return False
    if not _is_limit(headers.get("timelimit")) or headers.get("stamps") or headers.get("stamped_headers"):
        return False
    moments = all(_is_moment(headers.get(which)) for which in ("eta", "expires"))
    listed = ("timelimit", "stamps", "stamped_headers")
    return moments and all(_is_scalar(value) for which, value in headers.items() if which not in listed)


def _are_properties(properties: dict[str, Any]) -> bool:
    place = properties.get("delivery_info")
    if not isinstance(place, dict) or not all(_is_scalar(value) for value in place.values()):
        return False
    if not all(isinstance(place.get(which), str) for which in ("exchange", "routing_key")):
        return False
    is_plain = all(_is_scalar(value) for which, value in properties.items() if which != "delivery_info")
    return is_plain and _is_id(properties.get("delivery_tag")) and properties.get("body_encoding") == "base64"


def _is_body(body: Any) -> bool:
    """Tell whether a body contains only arguments, without callbacks, chains or groups."""
    if not isinstance(body, str) or len(body) > MAX_BODY_BYTES:
        return False
    try:
        called = orjson.loads(base64.b64decode(body, validate=True))
    except (binascii.Error, ValueError):
        return False
    if not isinstance(called, list) or [type(part) for part in called] != [list, dict, dict]:
        return False
    return not any(called[2].values())


def _is_limit(value: Any) -> bool:
    """Tell whether the time limits of a message, if any, are at most the limits of this service.

    If a message had higher limits, Celery would apply them instead of the limits of the service.
    """
    if value is None:
        return True
    return isinstance(value, list) and all(part is None or (type(part) is int and 0 < part <= TASK_SECONDS) for part in value)


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_ID


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int) or (isinstance(value, str) and len(value) <= _LONGEST_TEXT)


def _is_moment(value: Any) -> bool:
    if value is None:
        return True
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True
