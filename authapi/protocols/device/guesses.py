"""Limits wrong user codes, so that no attacker finds the code of another user's device by guessing.

Each IP address and each browser has a small limit. All browsers in which no user has logged in share one more limit. An attacker with many
IP addresses uses up only this shared limit, which does not affect users who have logged in before.
"""

from __future__ import annotations

from django.http import HttpRequest

from authapi.accounts.brute_force import counted_address
from authapi.edge.buckets import Bucket
from authapi.edge.rate_figures import USER_CODES_OF_BROWSER, USER_CODES_OF_PLACE, USER_CODES_OF_STRANGERS
from authapi.edge.throttling import Rate
from authapi.login.browser import address_of
from authapi.login.known_browser import known_browser
from foundation.database.transactions import lock_name


class Guesses:
    """The limits that apply to one request with a code."""

    def __init__(self, request: HttpRequest, tenant_id: str, *, browser: str) -> None:
        self._place = (tenant_id, counted_address(address_of(request)))
        known = known_browser(tenant_id, request.headers.get("Cookie", ""))
        self._buckets: list[tuple[Bucket, tuple[str, ...]]] = [(USER_CODES_OF_PLACE, self._place)]
        if known is not None:
            self._buckets.append((USER_CODES_OF_BROWSER, (tenant_id, known.name)))
        else:
            self._buckets += [(USER_CODES_OF_BROWSER, (tenant_id, browser)), (USER_CODES_OF_STRANGERS, (tenant_id,))]

    def hold(self) -> None:
        """Lock the guesses of one IP address until the transaction ends, so that concurrent guesses are counted one after the other."""
        lock_name("user_code:" + ":".join(self._place))

    def used_up(self) -> Rate | None:
        """Return the rate of a limit that is used up, None if another code may be tried. Counts nothing. Call `hold` first."""
        for bucket, owner in self._buckets:
            if not bucket.has_one(*owner):
                return Rate.of_empty(bucket)
        return None

    def count(self) -> None:
        """Count a wrong code. Call `hold` first."""
        for bucket, owner in self._buckets:
            bucket.takes(*owner)
