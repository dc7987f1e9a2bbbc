"""Errors of the management interface and of `/events`: one body, `{statusCode, error, message, errorCode}`."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.exceptions import ValidationError as ModelInvalid
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from authapi.failures.requests import TOO_MANY_REQUESTS
from authapi.tokens.verifying import TokenRefused
from foundation.database.engine.base import CommitInDoubt
from identity.services.failures import AlreadyExists, BeingDeleted, Conflict, Invalid, NotFound, ServiceError

logger = logging.getLogger(__name__)


class ApiProblem(Exception):
    """An error with a status, a sentence, and an error code (None if clients expect no code)."""

    def __init__(self, status: int, message: str, error_code: str | None = None, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.error_code = error_code
        self.headers = headers or {}


class TooManyRequests(ApiProblem):
    """The rate of this tenant and endpoint is used up."""

    def __init__(self) -> None:
        super().__init__(429, TOO_MANY_REQUESTS)


def problem_body(status: int, message: str, error_code: str | None = None) -> dict[str, Any]:
    """Return the error body; `errorCode` is omitted if it is None."""
    body: dict[str, Any] = {"statusCode": status, "error": HTTPStatus(status).phrase, "message": message}
    if error_code is not None:
        body["errorCode"] = error_code
    return body


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """Turn an exception of a view into the error answer. Logs an unexpected exception and answers 500 without details."""
    problem = _problem(error)
    body = problem_body(problem.status, problem.message, problem.error_code)
    return Response(body, status=problem.status, headers=problem.headers)


def _problem(error: Exception) -> ApiProblem:
    match error:
        case ApiProblem():
            return error
        case TokenRefused():
            return ApiProblem(error.status, error.message, error.error_code, headers=error.headers)
        case ServiceError():
            return _service_refusal(error)
        case exceptions.APIException() | ModelInvalid() | Http404() | PermissionDenied():
            return _refusal(error)
        case CommitInDoubt():
            logger.error("The connection to the database failed during a commit.")
            return ApiProblem(503, "The change may have been saved. Read it before you try again.", headers={"Retry-After": "2"})
        case OperationalError() | InterfaceError():
            logger.error("The database did not answer: %s", type(error).__name__)
            return ApiProblem(503, "The service cannot answer right now. Try again.", headers={"Retry-After": "2"})
        case _:
            logger.error("A management request failed unexpectedly.", exc_info=error)
            return ApiProblem(500, "The service met an unexpected condition.")


def _refusal(error: Exception) -> ApiProblem:
    match error:
        case exceptions.ValidationError():
            return ApiProblem(400, f"Payload validation error: {_sentence(error.detail)}", "invalid_body")
        case ModelInvalid():
            detail = error.message_dict if hasattr(error, "error_dict") else error.messages
            return ApiProblem(400, f"Payload validation error: {_sentence(detail)}", "invalid_body")
        case exceptions.ParseError():
            return ApiProblem(400, str(error.detail), "invalid_body")
        case Http404() | exceptions.NotFound():
            return ApiProblem(404, "Not found.")
        case PermissionDenied():
            return ApiProblem(403, "You may not do this.")
        case exceptions.APIException():
            return ApiProblem(error.status_code, str(error.detail), headers=_headers_of(error))
        case _:
            return ApiProblem(500, "The service met an unexpected condition.")


def _service_refusal(error: ServiceError) -> ApiProblem:
    match error:
        case NotFound():
            return ApiProblem(404, "Not found.")
        case AlreadyExists() | BeingDeleted() | Conflict():
            return ApiProblem(409, str(error))
        case Invalid():
            return ApiProblem(400, f"Payload validation error: {_sentence(error.errors)}", "invalid_body")
        case _:
            return ApiProblem(400, str(error), "operation_not_supported")


def _headers_of(error: exceptions.APIException) -> dict[str, str]:
    return {"Retry-After": str(int(wait) + 1)} if (wait := getattr(error, "wait", None)) else {}


def _sentence(detail: Any) -> str:
    """Flatten the details of a validation error into one line that names each field."""
    if isinstance(detail, dict):
        return "; ".join(f"{_sentence(inner)} (on property {name})" for name, inner in detail.items())
    if isinstance(detail, list | tuple):
        return " ".join(_sentence(inner) for inner in detail)
    return str(detail)
