"""How sending a message ends when it does not go well, for every channel: each class says what may be done next."""

from __future__ import annotations

from identity.services.failures import ServiceError


class ProviderAway(Exception):
    """The provider could not be reached, or refused for now. It surely has not taken the message, which may be sent again."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class InDoubt(Exception):
    """The connection ended after the message was handed over: the provider may have sent it. It is not sent again."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class MessageRefused(ServiceError):
    """The provider refuses the message for good."""


class MailNotConfigured(ServiceError):
    """No mail can be sent: EMAIL_URL is not set."""


class TextsNotConfigured(ServiceError):
    """No text message can be sent: neither the connection nor the tenant has a provider, and SMS_URL is not set."""
