"""Hashes and checks passwords, a few at a time: each hash occupies a core and much memory, and other work must continue.

Hashes in dedicated threads and blocks the caller. Never call this in an event loop.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from threading import local

from django.contrib.auth.hashers import get_hasher, make_password, verify_password


class HashingRefused(RuntimeError):
    """A thread that must stay fast tried to wait for a password hash."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


_here = local()


def refuse_in_this_thread() -> None:
    """Make every further call in this thread raise `HashingRefused`, because the thread serves requests that must not wait."""
    _here.is_refused = True


def hashed(password: str) -> str:
    """Return the stored form of a password, made with the first hasher of the settings."""
    _check_thread()
    return _threads().submit(make_password, password).result()


def verified(password: str, encoded: str) -> tuple[bool, bool]:
    """Tell whether the password matches, and whether its stored form should be renewed.

    A wrong password costs at least as much time as the first hasher, even if the stored form was imported.
    """
    _check_thread()
    return _threads().submit(_verified, password, encoded).result()


def is_of_first_kind(encoded: str) -> bool:
    """Tell whether a stored form comes from the first hasher, not from an import."""
    return encoded.startswith(f"{get_hasher().algorithm}$")


def _check_thread() -> None:
    if getattr(_here, "is_refused", False):
        raise HashingRefused


def _verified(password: str, encoded: str) -> tuple[bool, bool]:
    fits, must_renew = verify_password(password, encoded)
    if not fits and not is_of_first_kind(encoded):
        # Check a second hash, so that a wrong password takes as long as for an unknown user. An imported hash may be fast to check, and the
        # short time would disclose that the user exists.
        verify_password(password, _decoy())
    return fits, must_renew


def decoy() -> str:
    """Return a stored form that no password matches, to be checked for unknown users."""
    _check_thread()
    return _threads().submit(_decoy).result()


@lru_cache(maxsize=1)
def _decoy() -> str:
    return make_password(os.urandom(32).hex())


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    # One core stays free for everything else.
    return ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)) - 1), thread_name_prefix="hashing")
