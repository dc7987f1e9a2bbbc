"""Normalizes phone numbers to E.164, and accepts only numbers to which messages can be sent (`identity.messages.numbers`)."""

from __future__ import annotations

from collections.abc import Collection

from identity.messages.numbers import NumberRefused, normalized_number
from identity.messages.text_senders import countries_for
from identity.models import Connection


def read_number(typed: str, *, countries: Collection[str] = ()) -> str | None:
    """Return a number as E.164. None for an invalid number, and for a number of a country that is not in `countries`. If `countries` is
    empty, every country is allowed."""
    try:
        return normalized_number(typed, countries=countries)
    except NumberRefused:
        return None


def countries_of(connection: Connection) -> tuple[str, ...]:
    """Return the countries to which a connection sends messages. Empty means every country."""
    return countries_for(connection.tenant_id, connection)
