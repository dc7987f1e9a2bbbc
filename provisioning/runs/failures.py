"""How a run of an action fails: one class per thing the delivery does next. Pure.

A normal return is a delivered or skipped event; everything else raises one of these. `kind` is what the delivery
stores and groups by; the message, the detail and the exchanges never hold a secret.
"""

from __future__ import annotations

from typing import Any, ClassVar


class NotSent(Exception):
    """The request was not sent, and nothing before it that writes."""


class ActionError(Exception):
    """The action failed; the delivery is retried and in the end becomes a dead letter."""

    kind: ClassVar[str] = "action"

    def __init__(
        self,
        message: str | None = None,
        *,
        status: int | None = None,
        scim_type: str = "",
        detail: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message or self.__doc__)
        self.status = status
        self.scim_type = scim_type
        self.detail = detail
        self.retry_after = retry_after
        # Whether the server may have acted on the request that failed, or on an earlier try of it.
        self.is_uncertain = False
        # Filled by the runner: what was sent and said during this attempt, and the links that it has learned.
        self.exchanges: list[dict[str, Any]] = []
        self.log_lines: list[dict[str, Any]] = []
        self.links: list[dict[str, Any]] = []

    @property
    def class_name(self) -> str:
        return type(self).__name__


class ActionCrashed(ActionError):
    """The action raised an error of its own, or called `api.message.fail`."""


class TransientFailure(ActionError):
    """The destination could not be reached or was busy: the same request may succeed later.

    `retry_after` is the number of seconds the destination asked for, when it did; the delivery waits at least as long.
    """

    kind = "transient"


class ConfigurationFailure(ActionError):
    """The destination refuses every request: address, credentials or permissions are wrong."""

    kind = "configuration"


class DataFailure(ActionError):
    """The destination refuses this user: the data must change before a retry can succeed."""

    kind = "data"


class InvalidResponseShape(ActionError):
    """invalid response shape"""

    kind = "shape"


class Misconfigured(ActionError):
    """The action lacks a required secret or its settings cannot be used: its stream is held and loses nothing."""

    kind = "misconfigured"
