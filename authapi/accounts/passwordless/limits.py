"""Rate limits for sending and guessing codes. The limits prevent flooded mailboxes and guessed codes, and do not lock the real user out.

Each recipient has a bucket for the requests of all IP addresses together, and a bucket for each IP address. The bucket for one IP address
refills more slowly, so an attacker at one IP address cannot use up the allowance of the user. A browser in which the user has logged in
before has separate buckets. Requests from other browsers do not count in these buckets.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from django.conf import settings

from authapi.accounts.brute_force import counted_address
from authapi.accounts.passwordless.addresses import Address
from authapi.edge.addresses import AddressKey, customer_keys
from authapi.edge.buckets import Bucket
from authapi.edge.rate_figures import (
    CODE_GUESSES,
    CODE_GUESSES_FROM_PLACE,
    CODE_GUESSES_KNOWN,
    CODES,
    CODES_FROM_PLACE,
    CODES_KNOWN,
    CODES_OF_CLIENT,
    CODES_OF_TENANT,
    STARTS_OF_PLACE,
)
from authapi.edge.throttling import Rate
from authapi.models import Client

_Owned = tuple[Bucket, tuple[str, ...]]


class TooManyCodes(Exception):
    """Too many codes for this recipient, IP address, browser or application. Request another code later."""

    def __init__(self, rate: Rate) -> None:
        super().__init__(self.__doc__)
        self.rate = rate


@dataclass(frozen=True)
class Place:
    """The source of a request. `browser` identifies a browser in which the recipient has logged in before; None for every other browser.

    `is_trusted` is True for an authenticated application, which sends requests for many users from one IP address.
    """

    ip: str
    browser: AddressKey | None = field(default=None, repr=False)
    is_trusted: bool = False


def take_code(tenant_id: str, address: Address, *, client: Client, place: Place) -> None:
    """Count a code before it is sent. Raises `TooManyCodes`.

    Limits, in this order: 1. one IP address, for all recipients; 2. one IP address, for this recipient; 3. this recipient, from all IP
    addresses; 4. one application; 5. one tenant. A browser in which the user has logged in has a separate limit instead of 2 and 3. Limit 1
    does not apply if `place.is_trusted` is True.
    """
    for key in () if place.is_trusted else customer_keys(place.ip, settings.TRUSTED_PROXIES):
        _take(STARTS_OF_PLACE.times(key.factor), tenant_id, key.name)
    for bucket, owner in _of_address(tenant_id, address, place, known=CODES_KNOWN, place_bucket=CODES_FROM_PLACE, whole=CODES):
        _take(bucket, *owner)
    _take(CODES_OF_CLIENT, tenant_id, client.client_id)
    _take(CODES_OF_TENANT, tenant_id)


def may_guess(tenant_id: str, address: Address, place: Place) -> Rate | None:
    """Return None if another guess is allowed, otherwise the rate of the empty bucket. Counts no guess. The caller must have locked
    `address`."""
    for bucket, owner in _guesses(tenant_id, address, place):
        if not bucket.has_one(*owner):
            return Rate.of_empty(bucket)
    return None


def count_guess(tenant_id: str, address: Address, place: Place) -> None:
    """Count a wrong guess. The caller must have locked `address`, so that no other guess runs between `may_guess` and this call."""
    for bucket, owner in _guesses(tenant_id, address, place):
        bucket.takes(*owner)


def _guesses(tenant_id: str, address: Address, place: Place) -> list[_Owned]:
    return _of_address(tenant_id, address, place, known=CODE_GUESSES_KNOWN, place_bucket=CODE_GUESSES_FROM_PLACE, whole=CODE_GUESSES)


def _of_address(tenant_id: str, address: Address, place: Place, *, known: Bucket, place_bucket: Bucket, whole: Bucket) -> list[_Owned]:
    named = (tenant_id, address.channel.value, address.value)
    if place.browser is not None:
        return [(known, (*named, place.browser.name))]
    # The bucket of the IP address is first: if it is empty, the bucket of the recipient stays unchanged.
    return [(place_bucket, (*named, counted_address(place.ip))), (whole, named)]


def _take(bucket: Bucket, *owner: str) -> None:
    if not bucket.takes(*owner):
        raise TooManyCodes(Rate.of_empty(bucket))
