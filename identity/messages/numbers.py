"""Telephone numbers: parsed, judged and written in one way (E.164). Pure.

A number that a person types costs the sender. Numbers that pay their owner for being called are how a fraud works
that pumps messages, so they are refused, and so is every country that the tenant does not name.
"""

from __future__ import annotations

from collections.abc import Collection

import phonenumbers
from phonenumbers import NumberParseException, PhoneNumberType

_LONGEST_INPUT = 40
# Calls to these are paid for by the caller at a rate of the owner, end at a machine, or cost the owner.
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
# Satellite and international networks (+870, +881, +882, +883, +979): they belong to no country and cost the most.
_NO_COUNTRY = "001"
KNOWN_COUNTRIES: frozenset[str] = frozenset(phonenumbers.SUPPORTED_REGIONS)


class NumberRefused(ValueError):
    """No text message is sent to this number."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class NumberOdd(NumberRefused):
    """Give the whole number with the country in front, such as +49 151 12345678."""


class NumberKindRefused(NumberRefused):
    """Text messages are sent to telephones of people, and not to numbers of this kind."""


class CountryRefused(NumberRefused):
    """No text messages are sent to this country."""


def normalized_number(text: str, *, countries: Collection[str] = ()) -> str:
    """Return a number as `+4915112345678`. `countries` are the ISO codes that may be sent to, none means every country.

    Raises `NumberOdd`, `NumberKindRefused` or `CountryRefused`; none of them repeats the number.
    """
    if len(text) > _LONGEST_INPUT or not text.strip().startswith(("+", "00")):
        raise NumberOdd
    stripped = text.strip()
    try:
        number = phonenumbers.parse("+" + stripped[2:] if stripped.startswith("00") else stripped, None)
    except NumberParseException as error:
        raise NumberOdd from error
    # An extension is dialed by hand, and a message has none.
    if number.extension or not phonenumbers.is_valid_number(number):
        raise NumberOdd
    country = phonenumbers.region_code_for_number(number)
    if phonenumbers.number_type(number) in _REFUSED_KINDS or country in (None, _NO_COUNTRY):
        raise NumberKindRefused
    if countries and country not in countries:
        raise CountryRefused
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def masked_number(number: str) -> str:
    """Return a number as pages and logs show it: country and the last two digits."""
    return f"{number[:3]}…{number[-2:]}" if len(number) > 6 else "…"


def masked_address(address: str) -> str:
    """Return an e-mail address as pages and logs show it."""
    name, _, domain = address.partition("@")
    return f"{name[:1]}…@{domain}" if domain else "…"
