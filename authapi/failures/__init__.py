"""What happened -> status, error, description: one table per protocol, and the refusal that names a row of one of them.

`requests` is of every endpoint, `oauth` of clients and their tokens, `logins` of people. Clients compare some of the texts, so they
are kept to the letter. The management interface has error bodies of its own (`authapi.problems`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # The edge raises refusals.
    from authapi.edge.throttling import Rate


@dataclass(frozen=True)
class Failure:
    """One row: `description` may name values in braces."""

    status: int
    error: str
    description: str


class Case(Enum):
    """The cases of one protocol, each written as status, error and description."""

    def __init__(self, status: int, error: str, description: str) -> None:
        self.failure = Failure(status, error, description)


class RequestRefused(Exception):
    """A request to an OAuth endpoint was refused; `case` names the row.

    `rate` is that of the bucket that refused it, None where no bucket did or the chain knows it. `headers` go with the answer of an
    endpoint for programs, and `members` into its body beside the error. `reader` is the one origin whose scripts may read the refusal
    although cookies came along, empty where cookies do not count.
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
