"""Query parameters of the list of users: the search and the order, and the time limit for both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db.models import F
from django.db.models.functions import Lower
from django.http import QueryDict

from foundation.api.paging import Order, PlainReading, Reading, SortBy, order_of
from foundation.api.queries import switch_of, text_of
from foundation.api.refusals import Refusal, invalid_query
from identity.search.compiling import compiled_search
from identity.search.conditions import Condition
from identity.search.queries import AllOf, InvalidSearch, Node
from identity.search.reading import SearchReading
from identity.search.rows import UserConditions, is_selective
from identity.search.time_limit import SearchTookTooLong, search_time_limited

_ALL: Node[Condition] = AllOf(())
_SEARCH_ENGINES = ("v1", "v2", "v3")
_FOLDED = ("username", "name", "nickname", "given_name", "family_name")
_PLAIN = ("email_verified", "phone_number", "phone_verified", "picture", "blocked", "updated_at", "last_ip", "logins_count")
# For each of the first four orders there is an index that begins with the tenant. With any other order, the database sorts the whole
# result, within the time limit.
SORTS: dict[str, Any] = {
    "created_at": "created_at",
    "email": Lower("email"),
    "user_id": "user_id",
    "last_login": SortBy("last_login", has_gaps=True),
    **{name: SortBy(Lower(name), has_gaps=True, is_indexed=False) for name in _FOLDED},
    **{name: SortBy(F(name), has_gaps=True, is_indexed=False) for name in (*_PLAIN, "last_password_reset")},
}


@dataclass(frozen=True)
class AskedSearch:
    """The search and the order of one list request."""

    order: Order
    condition: Node[Condition]
    tenant_id: str

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """Limit the time of a search, and of an order without an index. Other lists need no limit: an index finds the rows of a page."""
        if self.order.is_indexed and self.condition == _ALL:
            yield PlainReading()
            return
        try:
            with search_time_limited():
                yield self._reading()
        except SearchTookTooLong as error:
            raise Refusal(503, "The search took too long. Request fewer users, or sort by `created_at`.") from error

    def _reading(self) -> Reading:
        if self.condition == _ALL:
            return PlainReading()
        # `UserConditions.of` already queries linked identities, so it must run inside the time limit.
        return SearchReading(UserConditions(self.tenant_id).of(self.condition), is_selective(self.condition))


def asked_search(query: QueryDict, tenant_id: str) -> AskedSearch:
    """Read `q`, `search_engine`, `primary_order` and `sort`. Answers an invalid value with 400 and the reason."""
    engine = text_of(query, "search_engine")
    if engine not in (None, *_SEARCH_ENGINES):
        raise invalid_query(f"Expected one of {', '.join(_SEARCH_ENGINES)}", "search_engine")
    switch_of(query, "primary_order", default=True)
    order, text = order_of(query, SORTS), text_of(query, "q")
    try:
        return AskedSearch(order, compiled_search(text) if text else _ALL, tenant_id)
    except InvalidSearch as error:
        raise invalid_query(f"Not a search: {error}", "q") from error
