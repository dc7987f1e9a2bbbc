"""The error handler of the management interface.

This module translates the errors of several apps. `authapi.problems` translates all other errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg.errors
from django.db import DataError, IntegrityError
from rest_framework.exceptions import UnsupportedMediaType, ValidationError
from rest_framework.response import Response

from authapi import problems
from authapi.problems import ApiProblem
from events.log.envelope import EventTooLarge
from foundation.api.refusals import Refusal, invalid_body
from identity.services.failures import Invalid, NotFound


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """Translate any exception of an endpoint into the error body."""
    response = problems.exception_handler(_named(error, context), context)
    if response.status_code == 401:
        # RFC 9110, 11.6.1: a 401 names the authentication scheme.
        response.headers.setdefault("WWW-Authenticate", "Bearer")
    return response


def _named(error: Exception, context: dict[str, Any]) -> Exception:
    match error:
        case Refusal():
            return ApiProblem(error.status, error.message, error.error_code)
        case NotFound():
            return ApiProblem(404, str(error), getattr(context.get("view"), "not_found_code", None))
        case Invalid() | ValidationError():
            refusal = _payload_refusal(error.errors if isinstance(error, Invalid) else error.detail)
            return ApiProblem(refusal.status, refusal.message, refusal.error_code)
        case EventTooLarge():
            return ApiProblem(413, f"The event of this change would have {error.size} bytes, the limit is {error.limit}.", "invalid_body")
        case DataError():
            # If a value has passed every check and PostgreSQL cannot store it, the error is the caller's.
            return ApiProblem(400, "Payload validation error: 'A value that cannot be stored' on property body", "invalid_body")
        case IntegrityError() if isinstance(error.__cause__, psycopg.errors.ForeignKeyViolation):
            return ApiProblem(409, "An object to which this request refers was deleted at the same time.")
        case UnsupportedMediaType():
            return ApiProblem(415, "The content type must be application/json or application/x-www-form-urlencoded.")
        case _:
            return error


def _payload_refusal(detail: Any) -> Refusal:
    path, reason = next(_leaves(detail, ""), ("body", "Invalid"))
    return invalid_body(reason, path)


def _leaves(detail: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield each refused member with its path: keys joined by points, list indexes in brackets."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            place = f"[{name}]" if isinstance(name, int) else name if name != "non_field_errors" else ""
            yield from _leaves(inner, f"{path}.{place}" if path and place and not isinstance(name, int) else f"{path}{place}")
    elif isinstance(detail, list | tuple):
        for index, inner in enumerate(detail):
            yield from _leaves(inner, f"{path}[{index}]" if isinstance(inner, dict | list) else path)
    else:
        yield path or "body", str(detail).removesuffix(".")
