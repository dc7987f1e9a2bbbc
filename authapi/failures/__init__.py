"""Tables of errors, one per protocol: a row maps a case to a status, an error code and a description. `RequestRefused` names a row.

The table `requests` is for all endpoints. The table `oauth` is for clients and their tokens. The table `logins` is for logins and logouts
of users. Clients compare some of the texts, so these texts never change. The management interface has its own error bodies
(`authapi.problems`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Only for annotations: `authapi.edge` raises these refusals, so a real import would be circular.
    from authapi.edge.throttling import Rate


@dataclass(frozen=True)
class Failure:
    """One row: `description` may contain names of values in braces."""

    status: int
    error: str
    description: str


class Case(Enum):
    """The cases of one protocol, each with status, error code and description."""

    def __init__(self, status: int, error: str, description: str) -> None:
        self.failure = Failure(status, error, description)


class RequestRefused(Exception):
    """A request is refused; `case` names the row.

    `rate` is the rate of the bucket that refused the request; None for other refusals, or if `authapi.views.chain` has the rate. A JSON
    endpoint adds `headers` to its answer, and `members` to the body with the error. `reader` is the only origin whose scripts may read the
    refusal. Endpoints that accept cookies from scripts of other origins set `reader`. If `reader` is empty, scripts of every origin may
    read the refusal, but their requests cannot use cookies.
    """

    def __init__(
        self,
        case: Case,
        *,
        rate: Rate | None = None,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> None:
        row = case.failure
        super().__init__(case.name)
        self.case = case
        self.rate = rate
        self.headers = dict(headers or {})
        self.members = dict(members or {})
        self.reader = ""
        self.failure = Failure(row.status, row.error, row.description.format(**values))
