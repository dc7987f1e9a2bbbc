"""Maps the status of a refused request to a class of failure. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from foundation.outbound.retry_after import retry_after
from provisioning.runs.failures import ActionError, ConfigurationFailure, DataFailure, TransientFailure
from provisioning.runs.masking import Mask, one_line
from provisioning.scim.responses import scim_error

_MAX_DETAIL_CHARACTERS = 256


class FilterRefused(DataFailure):
    """The server refuses the filter or its value."""


class Conflict(DataFailure):
    """The server reports that the resource already exists."""


class PreconditionFailed(DataFailure):
    """The resource has changed since it was read."""


class ResourceGone(DataFailure):
    """The server reports, in a SCIM error body, that the resource does not exist."""


class RouteMissing(ConfigurationFailure):
    """The answer is a 404 without a SCIM error body. Such an answer says nothing about the resource."""


# Statuses with a separate failure class. All other 4xx statuses are `DataFailure`, and all other 5xx statuses are `TransientFailure`.
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
    # 501, Not Implemented: a later attempt would fail again. Within the attempt, the request is repeated as after every 5xx.
    501: ConfigurationFailure,
}


def is_repeated_within_run(status: int) -> bool:
    """Tell whether a request that got this status is repeated: 429 and every 5xx, at most `SCIM_MAX_RETRIES` times (spec, "Action
    secrets").
    """
    return status == 429 or status >= 500


def refusal(label: str, status: int, headers: Mapping[str, str], body: bytes, *, mask: Mask, now: datetime) -> ActionError:
    """Return the failure for a response outside 2xx; `label` is the verb and the path, with `{id}` in place of the id."""
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
    # A SCIM 404 for a path with an id means that the resource does not exist. For the path of a collection, a 404 means that the base URL
    # is wrong.
    if status == 404 and is_scim and "{id}" in label:
        return ResourceGone
    if status in _CLASSES:
        return _CLASSES[status]
    if status < 400:
        # Redirects are not followed, because a redirected write could lose its method or body, and the token could go to another host.
        return ConfigurationFailure
    return DataFailure if status < 500 else TransientFailure
