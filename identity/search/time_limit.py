"""Limits how long one search may use the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled


class SearchTookTooLong(Exception):
    """The search took too long; use a narrower query or another sort order."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


@contextmanager
def search_time_limited() -> Iterator[None]:
    """Cancel statements of the block after `USER_SEARCH_TIMEOUT_MS`, and start no statement after that time. Raises `SearchTookTooLong`.

    The limit ends with the transaction, so a pooled connection does not keep it.
    """
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(settings.USER_SEARCH_TIMEOUT_MS)])
            with connection.execute_wrapper(_refusing_after(time.monotonic() + settings.USER_SEARCH_TIMEOUT_MS / 1000)):
                yield
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise SearchTookTooLong from error
        raise


def _refusing_after(end: float) -> Callable[..., Any]:
    def execute_in_time(execute: Callable[..., Any], *arguments: Any) -> Any:
        if time.monotonic() > end:
            raise SearchTookTooLong
        return execute(*arguments)

    return execute_in_time
