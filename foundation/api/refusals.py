"""What the management interface refuses by itself, with the codes that clients know."""

from __future__ import annotations


class Refusal(Exception):
    """The request is answered with an error. `config.server.problems` writes it as the one error body."""

    def __init__(self, status: int, message: str, error_code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.error_code = error_code


def invalid_body(reason: str, path: str) -> Refusal:
    """400: a member of the body does not fit."""
    return Refusal(400, f"Payload validation error: '{reason}' on property {path}", "invalid_body")


def invalid_query(reason: str, name: str) -> Refusal:
    """400: a query parameter does not fit."""
    return Refusal(400, f"Query validation error: '{reason}' on property {name}", "invalid_query_string")


def invalid_path(expected: str, name: str) -> Refusal:
    """400: an id in the path cannot be one."""
    return Refusal(400, f"Path validation error: '{expected}' on property {name}", "invalid_uri")


def not_supported(reason: str) -> Refusal:
    """400: right in form, and nothing this service does for this object."""
    return Refusal(400, reason, "operation_not_supported")


def insufficient_scope(*expected: str) -> Refusal:
    """403: what the body asks for needs more than the operation does."""
    return Refusal(403, f"Insufficient scope, expected any of: {','.join(expected)}", "insufficient_scope")
