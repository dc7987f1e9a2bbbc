"""Refusals of the management interface itself, with the codes that clients expect."""

from __future__ import annotations


class Refusal(Exception):
    """The request gets an error. `config.server.problems` writes its body."""

    def __init__(self, status: int, message: str, error_code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.error_code = error_code


def invalid_body(reason: str, path: str) -> Refusal:
    """400: a member of the body is invalid."""
    return Refusal(400, f"Payload validation error: '{reason}' on property {path}", "invalid_body")


def invalid_query(reason: str, name: str) -> Refusal:
    """400: a query parameter is invalid."""
    return Refusal(400, f"Query validation error: '{reason}' on property {name}", "invalid_query_string")


def invalid_path(expected: str, name: str) -> Refusal:
    """400: the id in the path is malformed."""
    return Refusal(400, f"Path validation error: '{expected}' on property {name}", "invalid_uri")


def not_supported(reason: str) -> Refusal:
    """400: a valid request that this service does not support for this object."""
    return Refusal(400, reason, "operation_not_supported")


def insufficient_scope(*expected: str) -> Refusal:
    """403: the token lacks a scope that the request needs."""
    return Refusal(403, f"Insufficient scope, expected any of: {','.join(expected)}", "insufficient_scope")
