"""What a sender of text messages is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class TextMessage:
    """One message. `id` is the same for every try, so that a gateway can tell a repetition."""

    id: str
    to: str
    body: str = field(repr=False)
    # Where the tenant's text names one; empty leaves it to the sender.
    sender: str = ""


class Sender(Protocol):
    """Hands a text message to a carrier."""

    def send(self, message: TextMessage) -> None:
        """Return once the provider has taken the message.

        Raises `ProviderAway` where it surely has not and may be asked again, `InDoubt` where it may have, and `MessageRefused`
        where it never will. Never called inside a transaction.
        """
