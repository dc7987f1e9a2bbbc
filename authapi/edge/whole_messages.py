"""ASGI extensions of our HTTP server for endpoints with small bodies: a complete request body, and a complete response in one call.

The standard path is `receive` and `send`, which every server has. `config.server.uvicorn_insides` adds these extensions to the scope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

# Returns the whole request body if it has already arrived, otherwise None.
BODY = "identity.body"
# Writes a complete response (status, headers, body) with one call. Returns False, without writing anything, if the caller must use `send`
# instead.
ANSWER = "identity.answer"

TakeBody = Callable[[], bytes | None]
WriteAnswer = Callable[[int, Sequence[tuple[bytes, bytes]], bytes], bool]
