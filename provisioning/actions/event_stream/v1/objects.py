"""The `event` and `api` that an entry point receives. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

from foundation.outbound.outcomes import Answer
from provisioning.actions.event_stream.v1.cache import ActionCache
from provisioning.runs.exchanges import ExchangeRecorder
from provisioning.runs.failures import ActionCrashed
from provisioning.runs.masking import Mask
from provisioning.runs.run_log import RunLog
from provisioning.scim.link_book import LinkBook
from provisioning.scim.lookups import Capabilities
from provisioning.scim.transport import Pacing


@dataclass(frozen=True)
class MessageData:
    """`event.message.data`: the object after the change, and details of the change."""

    object: dict[str, Any] | None = None
    previous_object: dict[str, Any] | None = None
    context: Mapping[str, Any] = field(default_factory=dict)

    @property
    def connection_name(self) -> str:
        return self._of_connection("name")

    @property
    def connection_strategy(self) -> str:
        return self._of_connection("strategy")

    def _of_connection(self, member: str) -> str:
        connection = self.context.get("connection")
        value = connection.get(member) if isinstance(connection, dict) else None
        return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class Message:
    """`event.message`: the envelope of the event. `keys` are its top-level names, for the log line about a malformed envelope."""

    id: str = ""
    type: str = ""
    source: str = ""
    specversion: str = ""
    time: str = ""
    purpose: str = ""
    data: MessageData = field(default_factory=MessageData)
    keys: tuple[str, ...] = ()

    @classmethod
    def of_envelope(cls, envelope: Mapping[str, Any], *, prefix: str) -> Message:
        """Read any envelope; members of the wrong type are treated as absent."""
        data = _object(envelope.get("data")) or {}
        texts = {name: value for name in ("id", "type", "source", "specversion", "time") if isinstance(value := envelope.get(name), str)}
        purpose = envelope.get(f"{prefix}purpose")
        return cls(
            **texts,
            purpose=purpose if isinstance(purpose, str) else "",
            data=MessageData(_object(data.get("object")), _object(data.get("previous_object")), _object(data.get("context")) or {}),
            keys=tuple(sorted(str(key) for key in envelope)),
        )


@dataclass(frozen=True)
class Event:
    """The `event` argument. The secrets are excluded from `repr`."""

    message: Message
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


class Sender(Protocol):
    """Sends HTTP requests; see `foundation.outbound.session.OutboundSession`."""

    def send(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None, deadline: float) -> Answer: ...


class Links(Protocol):
    """Account links of a run; see `provisioning.links.rows.RunLinks`."""

    def book(self, server: str, user_id: str) -> LinkBook: ...

    def lock(self, server: str, user_id: str, *, seconds: float) -> AbstractContextManager[None]: ...


@dataclass(frozen=True)
class Run:
    """The context of a run: configuration of the action, number of the attempt, deadline.

    `deadline` is a reading of `time.monotonic`. `trusted_strategies` are strategies of connections whose verified email addresses prove the
    owner of an account. `allow_named_deletion` is called before the deletion of an account that is identified only by its name. The
    function raises an exception above an hourly limit.
    """

    options: Mapping[str, Any]
    mapping: Any
    attempt: int
    deadline: float
    correlation_id: str
    sender: Sender
    recorder: ExchangeRecorder
    mask: Mask
    capabilities: Capabilities
    links: Links
    trusted_strategies: frozenset[str] = frozenset()
    allow_named_deletion: Callable[[str], None] = lambda user_id: None
    pace: Pacing | None = None
    allow_http: bool = False


class MessageApi:
    """`api.message`."""

    def fail(self, reason: str) -> NoReturn:
        """End the run as failed. The event is tried again; after the last attempt, it becomes a dead letter."""
        raise ActionCrashed(f"the action failed the message: {reason}")


@dataclass(frozen=True)
class Api:
    """The `api` argument: `cache` and `message` as documented, `log` for stored log lines, `run` for installed actions."""

    cache: ActionCache
    log: RunLog
    run: Run
    message: MessageApi = field(default_factory=MessageApi)


def _object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None
