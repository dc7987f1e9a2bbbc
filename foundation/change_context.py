"""The client and the request that cause changes. The code that handles a request sets them, and the recorder of events reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ChangingClient:
    """The client that made a change. `metadata` is always set, because the typed models of public client libraries require it."""

    client_id: str
    name: str
    metadata: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """Return the client as `data.context.client` of an event."""
        return {"id": self.client_id, "name": self.name, "metadata": dict(self.metadata)}


@dataclass(frozen=True)
class ChangeContext:
    """The client and the request that caused a change; each is None if unknown. `request` is `data.context.request` of the event."""

    client: ChangingClient | None = None
    request: dict[str, Any] | None = None


_NONE = ChangeContext()
_current: ContextVar[ChangeContext] = ContextVar("change_context", default=_NONE)


def current_change_context() -> ChangeContext:
    """Return the context bound to this task or thread; an empty context outside of requests."""
    return _current.get()


@contextmanager
def change_context(context: ChangeContext) -> Iterator[None]:
    """Bind `context` for the block."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)
