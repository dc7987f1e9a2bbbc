"""Errors of sending a message, for every channel. Each class says whether a retry is possible."""

from __future__ import annotations

from identity.services.failures import ServiceError


class ProviderAway(Exception):
    """The provider could not be reached, or refused for now. The provider has certainly not accepted the message, so a retry is safe."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class InDoubt(Exception):
    """The connection ended after the message was handed over. The message may have been sent, and is not sent again."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class MessageRefused(ServiceError):
    """The message was refused permanently."""


class MailNotConfigured(ServiceError):
    """No mail can be sent: EMAIL_URL is not set."""


class TextsNotConfigured(ServiceError):
    """No text message can be sent: neither the connection nor the tenant has a provider, and SMS_URL is not set."""
