"""Extensions of ASGI that our HTTP protocol offers to endpoints with small bodies: a request that is here, an answer that is complete.

The plain path is `receive` and `send`, which every other server has. `config.server.uvicorn_insides` puts these into the scope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

# Returns the whole body of the request where it has arrived already, else None.
BODY = "identity.body"
# Writes a whole answer with one call, given status, headers and body; False, with nothing written, where `send` must do it.
ANSWER = "identity.answer"

TakeBody = Callable[[], bytes | None]
WriteAnswer = Callable[[int, Sequence[tuple[bytes, bytes]], bytes], bool]
