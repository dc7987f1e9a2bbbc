"""From the status of a refusal to what the delivery does next: one table. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from foundation.outbound.retry_after import retry_after
from provisioning.runs.failures import ActionError, ConfigurationFailure, DataFailure, TransientFailure
from provisioning.runs.masking import Mask, one_line
from provisioning.scim.responses import scim_error

_MAX_DETAIL_CHARACTERS = 256


class FilterRefused(DataFailure):
    """The server refuses the filter, or this value in it."""


class Conflict(DataFailure):
    """The server says that the resource already exists."""


class PreconditionFailed(DataFailure):
    """The resource has changed since it was read."""


class ResourceGone(DataFailure):
    """The server says, in a SCIM error, that the resource does not exist."""


class RouteMissing(ConfigurationFailure):
    """The answer is a 404 that no SCIM server wrote: nothing is known about the resource."""


# Statuses that other statuses of their class do not decide. Everything else: 4xx is data, 5xx is transient.
_CLASSES: dict[int, type[ActionError]] = {
    401: ConfigurationFailure,
    403: ConfigurationFailure,
    404: RouteMissing,
    405: ConfigurationFailure,
    407: ConfigurationFailure,
    408: TransientFailure,
    409: Conflict,
    412: PreconditionFailed,
    425: TransientFailure,
    429: TransientFailure,
    # Not implemented: waiting does not implement it.
    501: ConfigurationFailure,
}


def is_repeated_within_run(status: int) -> bool:
    """Tell whether `SCIM_MAX_RETRIES` covers this status (spec, "Action secrets"): 429 and every 5xx."""
    return status == 429 or status >= 500


def refusal(label: str, status: int, headers: Mapping[str, str], body: bytes, *, mask: Mask, now: datetime) -> ActionError:
    """Return the failure that an answer outside 2xx stands for; `label` is verb and path without the id."""
    error = scim_error(body)
    scim_type = one_line(mask.text(error.scim_type), 64)
    failure = _class_of(label, status, is_scim=error.is_scim)
    return failure(
        f"{label} answered {status}" + (f" [{scim_type}]" if scim_type else ""),
        status=status,
        scim_type=scim_type,
        detail=one_line(mask.text(error.detail), _MAX_DETAIL_CHARACTERS),
        retry_after=retry_after(headers, now),
    )


def _class_of(label: str, status: int, *, is_scim: bool) -> type[ActionError]:
    if status == 400 and label.startswith("GET") and "{id}" not in label:
        return FilterRefused
    # Only under an id: a SCIM error for the collection itself says that the base address is wrong.
    if status == 404 and is_scim and "{id}" in label:
        return ResourceGone
    if status in _CLASSES:
        return _CLASSES[status]
    if status < 400:
        # A redirected write loses its verb or its body, and the token would travel to the new address.
        return ConfigurationFailure
    return DataFailure if status < 500 else TransientFailure
