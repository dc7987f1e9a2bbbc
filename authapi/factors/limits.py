"""Rate limits for sending and guessing codes of factors.

The limits are low, because an attacker who guesses codes already has the first factor.

An attacker who uses up the limits for guesses locks the user out only in new browsers: a browser in which the user has logged in before
has its own limit for guesses. The limits for sending codes are the same in all browsers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from authapi.edge.addresses import AddressKey, customer_of, keys_of, parsed_address
from authapi.edge.buckets import Bucket
from authapi.edge.rate_figures import (
    FACTOR_CODES_OF_TENANT,
    FACTOR_CODES_TO_ADDRESS,
    FACTOR_CODES_TO_USER,
    FACTOR_GUESSES,
    FACTOR_GUESSES_FROM_PLACE,
    FACTOR_GUESSES_KNOWN,
)
from authapi.edge.throttling import Rate
from identity.models import User


class TooManyMessages(Exception):
    """Too many codes were sent to this user, or to this email address or phone number. Request another code later."""

    def __init__(self, rate: Rate) -> None:
        super().__init__(self.__doc__)
        self.rate = rate


@dataclass(frozen=True)
class Whereabouts:
    """The source of a proof. `browser` identifies a browser in which this user has completed a login before; None for every other
    browser."""

    ip: str
    browser: AddressKey | None = field(default=None, repr=False)
    user_agent: str = ""


def take_message(user: User, address: str) -> None:
    """Count a code before it is sent to a phone or an email address of the user.

    Raises `TooManyMessages`. Contract 9.14: ten messages an hour for each device.
    """
    for bucket, owner in (
        (FACTOR_CODES_TO_USER, (user.tenant_id, str(user.pk))),
        (FACTOR_CODES_TO_ADDRESS, (user.tenant_id, address.casefold())),
        (FACTOR_CODES_OF_TENANT, (user.tenant_id,)),
    ):
        if not bucket.takes(*owner):
            raise TooManyMessages(Rate.of_empty(bucket))


def may_guess(user: User, place: Whereabouts) -> Rate | None:
    """Return None if another guess is allowed, otherwise the rate of the bucket that is used up.

    Counts no guess. Call it with the user locked.
    """
    for bucket, owner in _guesses(user, place):
        if not bucket.has_one(*owner):
            return Rate.of_empty(bucket)
    return None


def count_guess(user: User, place: Whereabouts) -> None:
    """Count a wrong guess. Call it with the user locked, so that no other guess runs between `may_guess` and this call."""
    for bucket, owner in _guesses(user, place):
        bucket.takes(*owner)


def _guesses(user: User, place: Whereabouts) -> list[tuple[Bucket, tuple[str, ...]]]:
    named = (user.tenant_id, str(user.pk))
    if place.browser is not None:
        return [(FACTOR_GUESSES_KNOWN, (*named, place.browser.name))]
    address = customer_of(keys_of(place.ip)) if parsed_address(place.ip) is not None else ""
    return [(FACTOR_GUESSES_FROM_PLACE, (*named, address)), (FACTOR_GUESSES, named)]
