"""What a worker takes from its queue: messages of the one shape that our processes write, and nothing else.

Redis has no rights per queue: a process that may write there can write anything. Celery refuses pickled bodies and unknown names by
itself, but an odd header ends the worker, a compressed body fills its memory, and a message of the wrong shape stays unsettled and
takes the place of a good one. So the transport drops such messages before Celery reads them.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Container
from datetime import datetime
from typing import Any

import orjson
from kombu.transport import TRANSPORT_ALIASES
from kombu.transport.redis import Channel, Transport

from config.settings.queue import TASK_SECONDS

logger = logging.getLogger(__name__)

# Arguments are ids.
MAX_BODY_BYTES = 64 * 1024
_LONGEST_TEXT = 4096
_LONGEST_ID = 255
_MOST_RETRIES = 1_000_000


def is_task_message(message: Any, names: Container[str]) -> bool:
    """Tell whether a message from the queue, read as JSON, is a call of one of the tasks `names` as our processes write it."""
    if not isinstance(message, dict):
        return False
    kinds = (message.get("content-type"), message.get("content-encoding"))
    headers, properties = message.get("headers"), message.get("properties")
    if kinds != ("application/json", "utf-8") or not isinstance(headers, dict) or not isinstance(properties, dict):
        return False
    return _are_headers(headers, names) and _are_properties(properties) and _is_body(message.get("body"))


def _are_headers(headers: dict[str, Any], names: Container[str]) -> bool:
    name, retries = headers.get("task"), headers.get("retries", 0)
    # Celery's own tasks, which run others, are called by none of ours.
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
    """Tell whether a body calls with arguments and asks for nothing after the call."""
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
    """Tell whether the limits of time of a message are none, or no longer than ours: it would outlive them."""
    if value is None:
        return True
    return isinstance(value, list) and all(part is None or (isinstance(part, int) and 0 < part <= TASK_SECONDS) for part in value)


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


class CheckedChannel(Channel):
    """A channel that passes over what is no JSON."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]  # kombu's types leave it out
        except (ValueError, RecursionError) as error:
            # It was taken from the queue already; its text stays out of the log.
            logger.error("a message that cannot be read was dropped: %s", type(error).__name__)  # noqa: TRY400  (the trace quotes it)
            return True


class CheckedTransport(Transport):
    """A transport that drops what our processes do not write."""

    Channel = CheckedChannel

    def _deliver(self, message: Any, queue: str | None) -> None:
        from config.celery import app  # noqa: PLC0415  (it registers this transport)

        if is_task_message(message, app.tasks):
            super()._deliver(message, queue)
        else:
            logger.error("a message in the queue %s was dropped: no process of this service wrote it", queue)


def use_checked_transport() -> None:
    """Let every broker address of Redis mean the transport that checks."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{CheckedTransport.__name__}"
