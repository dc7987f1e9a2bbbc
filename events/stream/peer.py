"""Dropping a connection whose reader has stopped. ASGI has no word for it, so each server is asked in its own way."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

logger = logging.getLogger(__name__)


def abort_connection(send: Callable[..., Any]) -> bool:
    """Drop the connection behind `send` with what is still buffered for it; returns whether this server lets us.

    uvicorn's `send` belongs to an object that holds the transport; elsewhere the server closes what ends unfinished.
    """
    abort = getattr(getattr(getattr(send, "__self__", None), "transport", None), "abort", None)
    if abort is None:
        return False
    abort()
    return True
