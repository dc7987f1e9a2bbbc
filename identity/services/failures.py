"""What services refuse, as exceptions that the edges translate once."""

from __future__ import annotations


class ServiceError(Exception):
    """The request cannot be done."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class NotFound(ServiceError):
    """There is no such row in this tenant."""


class AlreadyExists(ServiceError):
    """A row with this name or id is already there."""


class Invalid(ServiceError):
    """A value does not fit; `errors` names the fields."""

    def __init__(self, errors: dict[str, list[str]]) -> None:
        self.errors = errors
        super().__init__("; ".join(f"{field}: {' '.join(texts)}" for field, texts in errors.items()))


class NotSupported(ServiceError):
    """The operation does not fit this kind of row."""


class Conflict(ServiceError):
    """It cannot be done in the state that this is in."""


class BeingDeleted(ServiceError):
    """It is being deleted: nothing about it changes any more, and nothing is added to it."""
