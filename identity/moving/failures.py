"""Errors of the steps of a move. Every message is a sentence for the operator."""

from __future__ import annotations

from identity.services.failures import ServiceError


class MoveRefused(ServiceError):
    """The step is not possible now; nothing was changed."""


class BadArchive(ServiceError):
    """The archive cannot be read."""
