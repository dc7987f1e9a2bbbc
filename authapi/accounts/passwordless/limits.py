"""How often codes are sent and guessed, so that no mailbox is flooded, no code is found by trying, and no person is shut out.

An attacker who sends or guesses from one place uses up what that place has for the address, and leaves the rest to the person: the
figures of a place gain more slowly than those of the address. A browser that has logged the account in before has figures of its
own, which a flood from elsewhere does not touch.
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
    """Too many codes for this address, from this place, or of this application. Ask for another one later."""

    def __init__(self, rate: Rate) -> None:
        super().__init__(self.__doc__)
        self.rate = rate


@dataclass(frozen=True)
class Place:
    """Where a request comes from. `browser` is the mark of a browser that has logged an account in, where that is the address's account.

    `is_trusted` is for an application that has proven itself and asks for many people from one address.
    """

    ip: str
    browser: AddressKey | None = field(default=None, repr=False)
    is_trusted: bool = False


def take_code(tenant_id: str, address: Address, *, client: Client, place: Place) -> None:
    """Count a code that is about to be sent. Raises `TooManyCodes`.

    1. What one place asks for over all addresses. 2. What it asks for at this address, and 3. what everyone does there; a browser
    that the account knows counts apart from both. 4. What one application and 5. one tenant send.
    """
    for key in () if place.is_trusted else customer_keys(place.ip, settings.TRUSTED_PROXIES):
        _take(STARTS_OF_PLACE.times(key.factor), tenant_id, key.name)
    for bucket, owner in _of_address(tenant_id, address, place, known=CODES_KNOWN, place_bucket=CODES_FROM_PLACE, whole=CODES):
        _take(bucket, *owner)
    _take(CODES_OF_CLIENT, tenant_id, client.client_id)
    _take(CODES_OF_TENANT, tenant_id)


def may_guess(tenant_id: str, address: Address, place: Place) -> Rate | None:
    """Return None where another guess may be made, else the rate of what is used up. Call it with the address held; counts nothing."""
    for bucket, owner in _guesses(tenant_id, address, place):
        if not bucket.has_one(*owner):
            return Rate.of_empty(bucket)
    return None


def count_guess(tenant_id: str, address: Address, place: Place) -> None:
    """Count a wrong guess. Call it with the address held, so that no other guess comes between `may_guess` and this."""
    for bucket, owner in _guesses(tenant_id, address, place):
        bucket.takes(*owner)


def _guesses(tenant_id: str, address: Address, place: Place) -> list[_Owned]:
    return _of_address(tenant_id, address, place, known=CODE_GUESSES_KNOWN, place_bucket=CODE_GUESSES_FROM_PLACE, whole=CODE_GUESSES)


def _of_address(tenant_id: str, address: Address, place: Place, *, known: Bucket, place_bucket: Bucket, whole: Bucket) -> list[_Owned]:
    named = (tenant_id, address.channel.value, address.value)
    if place.browser is not None:
        return [(known, (*named, place.browser.name))]
    # The place first: what it has used up already must not be taken from the person as well.
    return [(place_bucket, (*named, counted_address(place.ip))), (whole, named)]


def _take(bucket: Bucket, *owner: str) -> None:
    if not bucket.takes(*owner):
        raise TooManyCodes(Rate.of_empty(bucket))
