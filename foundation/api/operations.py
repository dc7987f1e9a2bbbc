"""The declaration of an operation of the management interface: id, scopes, life cycle, body and responses.

The scope check and the OpenAPI document use the same declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rest_framework import serializers

Schema = dict[str, Any]

# The type of most response fields.
TEXT: Schema = {"type": "string"}
TIME: Schema = {"type": "string", "format": "date-time"}
SWITCH: Schema = {"type": "boolean"}
WHOLE: Schema = {"type": "integer"}
# Uncountable words in the names of operations: `act` writes no article before them.
_UNCOUNTED = frozenset({"access", "protection", "throttling", "detection"})


class Lifecycle(StrEnum):
    """The labels of the life cycle of an operation (spec, "Versioning", 2)."""

    EARLY_ACCESS = "Early Access"
    GENERALLY_AVAILABLE = "Generally Available"
    DEPRECATED = "Deprecated"
    PLANNED = "Planned"
    BETA = "Beta"


@dataclass(frozen=True)
class Parameter:
    """A query parameter; a `repeated` parameter may occur several times."""

    name: str
    schema: Schema
    description: str
    is_required: bool = False


@dataclass(frozen=True)
class Operation:
    """One method of one path. A token needs one entry of `scopes`. If an entry has several scopes, joined by spaces, all are needed.

    `refuses` lists further error statuses, which not every operation has. With `is_body_list`, the body is a list of `body` objects.
    `body_schema` describes a body with another structure, such as a list of words. `repeated_status` is the status of the response if an
    earlier call already had the same effect; None if this status does not differ. If a client can continue with the stream after it has
    read a list, `snapshot_of` is the kind of document in the list. The response then has a cursor (`foundation.api.snapshots`).
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
    body_schema: Schema | None = None
    snapshot_of: str | None = None
    lifecycle: Lifecycle = Lifecycle.GENERALLY_AVAILABLE

    @property
    def act(self) -> str:
        """The operation as log lines describe it: `update_client` is "Update a client"."""
        verb, *words = self.id.split("_")
        thing = " ".join(words)
        is_many = words[-1:] and (words[-1].endswith("s") or words[-1] in _UNCOUNTED)
        article = "" if is_many or not words else "an " if thing[0] in "aeio" else "a "
        return f"{verb.capitalize()} {article}{thing}".strip()

    @property
    def single_scopes(self) -> tuple[str, ...]:
        """Every scope in `scopes`, alone or together with others."""
        return tuple(dict.fromkeys(scope for together in self.scopes for scope in together.split()))


@dataclass(frozen=True)
class Route:
    """A path below `/api/v2/`, its endpoint, and the operation of each method."""

    path: str
    endpoint: type[Any]
    actions: Mapping[str, str] = field(default_factory=dict)
