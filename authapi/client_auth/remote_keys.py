"""Keys that clients publish at their `jwks_uri`: fetched in separate threads, cached, and served stale during a refresh.

A login waits for a fetch only if no usable set of the client is cached, or if the token names an unknown key. A failing key set does not
affect clients that sign with a cached key.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLong
from dataclasses import dataclass, field
from functools import lru_cache
from threading import BoundedSemaphore, RLock
from typing import Any

import orjson
from joserfc.jwk import RSAKey

from authapi.client_auth.signatures import ALGORITHMS, imported
from foundation.outbound.outcomes import OutboundError
from foundation.outbound.session import outbound_session
from foundation.outbound.turns import NoTurn, turn

_FETCH_SECONDS = 5.0
_WAIT_SECONDS = 5.5
# After this age, a set is fetched again. The cached set is used during the fetch.
_FRESH_SECONDS = 600.0
# After this age, a set is no longer used: the client may have withdrawn a key.
_STALE_SECONDS = 86_400.0
# Shortest pause between fetches after an unknown key id or a failure. Without a pause, forged tokens could cause many requests to the
# server of the client.
_PAUSE_SECONDS = 30.0
# Number of requests in one process that may wait for key sets at the same time. Further requests are refused with an error, which asks the
# client to try again.
_MOST_WAITING = 4
_MOST_SETS = 1000
_MOST_KEYS = 20
_LARGEST_BODY = 64 * 1024
_SHORTEST_MODULUS, _LONGEST_MODULUS = 256, 512
# This length permits exponents of at most 64 bits. OpenSSL accepts any exponent for keys of up to 3072 bits, and a long exponent makes a
# check 100 times slower.
_LONGEST_EXPONENT_CHARACTERS = 11


class KeysUnavailable(Exception):
    """The key set of the client is unavailable now."""


class UnreadableKeys(Exception):
    """The response from the URL is not a key set."""


@dataclass(frozen=True)
class RemoteKey:
    """A key of a set. `algorithm` is empty if the set states no algorithm for the key, and `kid` is empty if the key has no id."""

    kid: str
    algorithm: str
    key: RSAKey

    def fits(self, kid: str | None, algorithm: str) -> bool:
        """Tell whether the key may have signed a token with this header."""
        return kid in (None, self.kid) and self.algorithm in ("", algorithm)


@dataclass
class _Set:
    """The cached key set of one URL. `fetched_at` is 0 before the first successful fetch."""

    keys: tuple[RemoteKey, ...] = ()
    fetched_at: float = 0.0
    tried_at: float = 0.0
    fetch: Future[tuple[RemoteKey, ...]] | None = field(default=None, repr=False)


Place = tuple[str, str]


class RemoteKeys:
    """The key sets of one process. Thread-safe. At most one thread fetches a set at a time."""

    def __init__(self, fetch: Callable[[str, str], tuple[RemoteKey, ...]], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._clock = clock
        self._sets: OrderedDict[Place, _Set] = OrderedDict()
        # The lock is reentrant: if a fetch ends before its callback is added, the thread that adds the callback also runs the callback, and
        # this thread already holds the lock.
        self._lock = RLock()
        self._waiting = BoundedSemaphore(_MOST_WAITING)

    def get(self, tenant_id: str, address: str, *, kid: str | None, algorithm: str) -> tuple[RemoteKey, ...]:
        """Return the keys that match the header of a token; empty if the set contains no such key.

        If no cached key matches, this call waits for a fetch. It raises `KeysUnavailable` if the fetch fails, or if too many requests wait.
        It also raises `KeysUnavailable` if no usable set is cached and the last fetch has just failed.
        """
        now = self._clock()
        with self._lock:
            known = self._known((tenant_id, address))
            is_usable = bool(known.fetched_at) and now - known.fetched_at < _STALE_SECONDS
            fitting = _fitting(known.keys, kid, algorithm) if is_usable else ()
            fetch = known.fetch
            is_due = not known.fetched_at or not fitting or now - known.fetched_at >= _FRESH_SECONDS
            if is_due and fetch is None and (not known.tried_at or now - known.tried_at >= _PAUSE_SECONDS):
                fetch = self._begin(tenant_id, address, known, now)
        if fitting:
            # The set may be older than `_FRESH_SECONDS`. Calls still get its keys while a thread fetches it again.
            return fitting
        if fetch is None:
            if is_usable:
                return ()
            raise KeysUnavailable
        return _fitting(self._waited(fetch), kid, algorithm)

    def clear(self) -> None:
        """Remove every cached set."""
        with self._lock:
            self._sets.clear()

    def _known(self, place: Place) -> _Set:
        known = self._sets.setdefault(place, _Set())
        self._sets.move_to_end(place)
        while len(self._sets) > _MOST_SETS:
            self._sets.popitem(last=False)
        return known

    def _begin(self, tenant_id: str, address: str, known: _Set, now: float) -> Future[tuple[RemoteKey, ...]]:
        known.tried_at = now
        fetch = known.fetch = _threads().submit(self._fetch, tenant_id, address)
        fetch.add_done_callback(lambda done: self._ended(known, done))
        return fetch

    def _ended(self, known: _Set, done: Future[tuple[RemoteKey, ...]]) -> None:
        with self._lock:
            known.fetch = None
            if not done.cancelled() and done.exception() is None:
                known.keys, known.fetched_at = done.result(), self._clock()

    def _waited(self, fetch: Future[tuple[RemoteKey, ...]]) -> tuple[RemoteKey, ...]:
        if not self._waiting.acquire(blocking=False):
            raise KeysUnavailable
        try:
            return fetch.result(_WAIT_SECONDS)
        except (OutboundError, NoTurn, UnreadableKeys, TooLong) as error:
            raise KeysUnavailable from error
        finally:
            self._waiting.release()


def fetched(tenant_id: str, address: str) -> tuple[RemoteKey, ...]:
    """Fetch and return the keys at a URL. Raises `OutboundError`, `NoTurn` or `UnreadableKeys`."""
    with turn(tenant_id):
        headers = {"Accept": "application/jwk-set+json, application/json"}
        answer = outbound_session().send("GET", address, headers=headers, body=None, deadline=time.monotonic() + _FETCH_SECONDS)
    if answer.status != 200 or len(answer.body) > _LARGEST_BODY:
        # Redirects are not followed: only the registered URL is trusted.
        raise UnreadableKeys
    return read_keys(answer.body)


def read_keys(body: bytes) -> tuple[RemoteKey, ...]:
    """Return the usable keys of a set (RFC 7517, 5): public RSA keys for signatures. Raises `UnreadableKeys`."""
    try:
        document: Any = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UnreadableKeys from error
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise UnreadableKeys
    found = (_read_key(jwk) for jwk in listed[:_MOST_KEYS])
    return tuple(key for key in found if key is not None)


def _read_key(jwk: Any) -> RemoteKey | None:
    """Return a key of a set. None for a key that the service does not support: a set may contain such keys."""
    if not isinstance(jwk, dict) or jwk.get("kty") != "RSA" or "d" in jwk or jwk.get("use", "sig") != "sig":
        return None
    kid, algorithm, modulus, exponent = jwk.get("kid", ""), jwk.get("alg", ""), jwk.get("n"), jwk.get("e")
    if not isinstance(kid, str) or not isinstance(modulus, str) or not isinstance(exponent, str) or algorithm not in ("", *ALGORITHMS):
        return None
    if not _SHORTEST_MODULUS <= len(modulus) * 3 // 4 <= _LONGEST_MODULUS + 1 or len(exponent) > _LONGEST_EXPONENT_CHARACTERS:
        return None
    try:
        return RemoteKey(kid, algorithm, imported(modulus, exponent))
    except (ValueError, TypeError):
        return None


def _fitting(keys: tuple[RemoteKey, ...], kid: str | None, algorithm: str) -> tuple[RemoteKey, ...]:
    return tuple(key for key in keys if key.fits(kid, algorithm))


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    # Use separate threads, so that a slow server does not delay tokens or pages of other clients.
    return ThreadPoolExecutor(2, thread_name_prefix="authapi-keys")


remote_keys = RemoteKeys(fetched)
