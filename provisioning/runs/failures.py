"""Exceptions of a run. The class of an exception determines the next step of the delivery. Pure.

A normal return means delivered or skipped. In every other case, the run raises one of these exceptions. Deliveries store `kind` as the
class of their failure (`error_class`). Message, detail and exchanges never contain secrets.
"""

from __future__ import annotations

from typing import Any, ClassVar


class NotSent(Exception):
    """The request was not sent, and the run has sent no earlier write."""


class ActionError(Exception):
    """The action failed; the delivery is attempted again, and becomes a dead letter if the last attempt fails."""

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
        # Whether the server may have processed the failed request or an earlier try of that request.
        self.is_uncertain = False
        # Set by the runner: exchanges and log lines of this attempt, and the rows of account links that the run has changed.
        self.exchanges: list[dict[str, Any]] = []
        self.log_lines: list[dict[str, Any]] = []
        self.links: list[dict[str, Any]] = []

    @property
    def class_name(self) -> str:
        return type(self).__name__


class ActionCrashed(ActionError):
    """The action raised its own exception, or called `api.message.fail`."""


class TransientFailure(ActionError):
    """The destination was unreachable or busy, so the same request may succeed later.

    `retry_after` is the destination's `Retry-After` in seconds, if any; the delivery waits at least this long.
    """

    kind = "transient"


class ConfigurationFailure(ActionError):
    """The destination refuses every request: URL, credentials or permissions are wrong."""

    kind = "configuration"


class DataFailure(ActionError):
    """The destination refuses this user. A further attempt can succeed only after a change of the data."""

    kind = "data"


class InvalidResponseShape(ActionError):
    """invalid response shape"""

    kind = "shape"


class Misconfigured(ActionError):
    """A required secret of the action is missing, or the settings of the action are invalid: the stream is held, and no event is lost."""

    kind = "misconfigured"
