"""The interface of senders of text messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class TextMessage:
    """One message. `id` is the same each time the message is sent, so that a gateway can detect repetitions."""

    id: str
    to: str
    body: str = field(repr=False)
    # The number or name that the recipient sees as the sender, from the tenant's template; empty for the default of the provider.
    sender: str = ""


class Sender(Protocol):
    """Hands a text message to a provider."""

    def send(self, message: TextMessage) -> None:
        """Send the message, and return when the provider has accepted it.

        Raises `ProviderAway` if the provider has certainly not accepted the message, so that a retry is safe; `InDoubt` if the provider may
        have accepted the message; and `MessageRefused` for a final refusal. Never called inside a transaction.
        """
