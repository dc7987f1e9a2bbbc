"""What an operation of the management interface is: its id, scopes, life cycle, body and answers, in one declaration.

The scopes are checked and the OpenAPI document is made from the same lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rest_framework import serializers

Schema = dict[str, Any]

# What most fields of answers are.
TEXT: Schema = {"type": "string"}
TIME: Schema = {"type": "string", "format": "date-time"}
SWITCH: Schema = {"type": "boolean"}
WHOLE: Schema = {"type": "integer"}
# Words without a plural in names of operations.
_UNCOUNTED = frozenset({"access", "protection", "throttling", "detection"})


class Lifecycle(StrEnum):
    """The labels of the document ("Versioning", 2)."""

    EARLY_ACCESS = "Early Access"
    GENERALLY_AVAILABLE = "Generally Available"
    DEPRECATED = "Deprecated"
    PLANNED = "Planned"
    BETA = "Beta"


@dataclass(frozen=True)
class Parameter:
    """A query parameter; a `repeated` one may be sent several times."""

    name: str
    schema: Schema
    description: str
    is_required: bool = False


@dataclass(frozen=True)
class Operation:
    """One method of one path. A token needs one of `scopes`; those joined by a space are needed together.

    `refuses` are statuses beyond those of every operation. A `body` with `is_body_list` is a list of such objects.
    `repeated_status` answers a call whose work is already done, where that differs. A list whose rows the stream continues
    is a `snapshot_of` their kind of document, and answers with a cursor (`foundation.api.snapshots`).
    """

    id: str
    summary: str
    scopes: tuple[str, ...]
    status: int
    answer: Schema | None = None
    body: type[serializers.Serializer[Any]] | None = None
    parameters: tuple[Parameter, ...] = ()
    refuses: tuple[int, ...] = ()
    repeated_status: int | None = None
    is_body_list: bool = False
    snapshot_of: str | None = None
    lifecycle: Lifecycle = Lifecycle.GENERALLY_AVAILABLE

    @property
    def act(self) -> str:
        """What the operation does, as lines of the log describe it: `update_client` is "Update a client"."""
        verb, *words = self.id.split("_")
        thing = " ".join(words)
        is_many = words[-1:] and (words[-1].endswith("s") or words[-1] in _UNCOUNTED)
        article = "" if is_many or not words else "an " if thing[0] in "aeio" else "a "
        return f"{verb.capitalize()} {article}{thing}".strip()

    @property
    def single_scopes(self) -> tuple[str, ...]:
        """Every scope that is named, alone or together with others."""
        return tuple(dict.fromkeys(scope for together in self.scopes for scope in together.split()))


@dataclass(frozen=True)
class Route:
    """A path below `/api/v2/`, the endpoint behind it, and which method is which of its operations."""

    path: str
    endpoint: type[Any]
    actions: Mapping[str, str] = field(default_factory=dict)
