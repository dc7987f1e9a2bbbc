"""Errors of services. Each interface maps them to its own errors in one place."""

from __future__ import annotations


class ServiceError(Exception):
    """The request cannot be done."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class NotFound(ServiceError):
    """There is no such row in this tenant."""


class AlreadyExists(ServiceError):
    """A row with this name or id already exists."""


class Invalid(ServiceError):
    """A value is invalid; `errors` names the fields."""

    def __init__(self, errors: dict[str, list[str]]) -> None:
        self.errors = errors
        super().__init__("; ".join(f"{field}: {' '.join(texts)}" for field, texts in errors.items()))


class NotSupported(ServiceError):
    """The operation is not supported for this kind of row."""


class Conflict(ServiceError):
    """The present state does not permit the operation."""


class BeingDeleted(ServiceError):
    """The object is being deleted: it cannot be changed, and nothing can be added to it."""
