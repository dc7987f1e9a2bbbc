"""Telephone numbers: parsed, checked and formatted as E.164. Pure.

Each message to a number that a user typed costs money. Fraudsters request messages to numbers that pay their owner, so such numbers
are refused. Numbers of countries that the tenant has not allowed are refused, too.
"""

from __future__ import annotations

from collections.abc import Collection

import phonenumbers
from phonenumbers import NumberParseException, PhoneNumberType

_LONGEST_INPUT = 40
# Numbers of these types are refused, because the owner sets the price of a call, a machine answers, or the owner pays for the call.
_REFUSED_KINDS = frozenset(
    {
        PhoneNumberType.PREMIUM_RATE,
        PhoneNumberType.SHARED_COST,
        PhoneNumberType.PERSONAL_NUMBER,
        PhoneNumberType.PAGER,
        PhoneNumberType.UAN,
        PhoneNumberType.VOICEMAIL,
        PhoneNumberType.TOLL_FREE,
    }
)
# Satellite and international networks (+870, +881, +882, +883, +979) belong to no country and are the most expensive.
_NO_COUNTRY = "001"
KNOWN_COUNTRIES: frozenset[str] = frozenset(phonenumbers.SUPPORTED_REGIONS)


class NumberRefused(ValueError):
    """No text message is sent to this number."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class NumberOdd(NumberRefused):
    """Enter the complete number with the country code, such as +49 151 12345678."""


class NumberKindRefused(NumberRefused):
    """Text messages cannot be sent to numbers of this kind."""


class CountryRefused(NumberRefused):
    """No text messages are sent to this country."""


def normalized_number(text: str, *, countries: Collection[str] = ()) -> str:
    """Return a number as `+4915112345678`. `countries` are the allowed ISO codes; empty allows every country.

    Raises `NumberOdd`, `NumberKindRefused` or `CountryRefused`. The error never contains the number.
    """
    if len(text) > _LONGEST_INPUT or not text.strip().startswith(("+", "00")):
        raise NumberOdd
    stripped = text.strip()
    try:
        number = phonenumbers.parse("+" + stripped[2:] if stripped.startswith("00") else stripped, None)
    except NumberParseException as error:
        raise NumberOdd from error
    # A text message cannot reach an extension.
    if number.extension or not phonenumbers.is_valid_number(number):
        raise NumberOdd
    country = phonenumbers.region_code_for_number(number)
    if phonenumbers.number_type(number) in _REFUSED_KINDS or country in (None, _NO_COUNTRY):
        raise NumberKindRefused
    if countries and country not in countries:
        raise CountryRefused
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def masked_number(number: str) -> str:
    """Return a masked number for pages and logs: country and the last two digits."""
    return f"{number[:3]}…{number[-2:]}" if len(number) > 6 else "…"


def masked_address(address: str) -> str:
    """Return a masked email address for pages and logs."""
    name, _, domain = address.partition("@")
    return f"{name[:1]}…@{domain}" if domain else "…"
