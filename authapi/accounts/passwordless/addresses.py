"""The email addresses and phone numbers that receive codes: normalized for storage and masked for display."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator

from authapi.accounts.passwordless.numbers import read_number
from foundation.json_values import text_problem
from identity.models import Connection

LONGEST = 254
_is_email = EmailValidator()


class Channel(StrEnum):
    """The medium of a message. The value is the strategy of the connections that use this medium."""

    EMAIL = "email"
    SMS = "sms"


@dataclass(frozen=True)
class Address:
    """An email address in lower case, or a phone number in E.164."""

    channel: Channel
    value: str

    @property
    def field(self) -> str:
        """The name of the user field that stores the email address or the phone number."""
        return "email" if self.channel is Channel.EMAIL else "phone_number"

    @property
    def proof_field(self) -> str:
        """The name of the user field that tells whether the email address or the phone number is verified."""
        return "email_verified" if self.channel is Channel.EMAIL else "phone_verified"

    @property
    def masked(self) -> str:
        """The masked address, for pages without a login: the first letter and the domain, or the last two digits."""
        if self.channel is Channel.SMS:
            return f"{'•' * (len(self.value) - 2)}{self.value[-2:]}"
        name, _, domain = self.value.rpartition("@")
        return f"{name[:1]}•••@{domain}"


class AddressOdd(ValueError):
    """The text is not a valid email address or phone number."""


def channel_of(connection: Connection) -> Channel | None:
    """Return the medium of the codes of a connection, or None if its users do not log in with codes."""
    return Channel(connection.strategy) if connection.strategy in list(Channel) else None


def read_address(channel: Channel, typed: str, *, countries: Collection[str] = ()) -> Address:
    """Return the normalized form of the email address or phone number that a user typed. Raises `AddressOdd`. `countries` limits phone
    numbers; empty allows all."""
    text = typed.strip()
    if not text or len(text) > LONGEST or text_problem(text):
        raise AddressOdd
    if channel is Channel.SMS:
        number = read_number(text, countries=countries)
        if number is None:
            raise AddressOdd
        return Address(channel, number)
    try:
        _is_email(text)
    except ValidationError as error:
        raise AddressOdd from error
    # Refuse non-ASCII letters: some become ASCII letters in lower case, so two different email addresses could become one.
    if not text.isascii():
        raise AddressOdd
    return Address(channel, text.lower())
