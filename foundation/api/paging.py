"""The three forms of a list: plain, pages with totals, and checkpoint paging.

By default, rows are ordered by creation, then key. Checkpoints are keysets: their cost does not grow with the list.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import orjson
from django.conf import settings
from django.db.models import F, IntegerField, Model, Q, QuerySet
from django.http import QueryDict

from foundation.api.queries import number_of, projection_of, switch_of, text_of
from foundation.api.refusals import Refusal, invalid_query
from foundation.json_values import text_problem

PAGE_SIZE = 50
LARGEST_PAGE = 100
_LONGEST_CHECKPOINT = 256
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST_KEY = 2**63 - 1
_BY_AGE = "created_at:1"

Render = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Listing:
    """The options of one list: its collection key, the fields of its items, and its differences from other lists.

    The request parameter `fields` can name only the fields in the tuple `fields`. An item always has the fields in `kept`, and has the
    fields in `only_on_request` only if the request names them.
    """

    key: str
    fields: tuple[str, ...]
    kept: frozenset[str] = frozenset()
    only_on_request: tuple[str, ...] = ()
    has_length: bool = False
    allows_empty_page: bool = False
    only_take: bool = False
    largest_take: int = LARGEST_PAGE


@dataclass(frozen=True)
class SortBy:
    """The order of one sort field.

    `has_gaps`: rows without the field come last in both directions. `is_indexed`: a database index returns the rows in this order.
    """

    expression: Any
    has_gaps: bool = False
    is_indexed: bool = True


@dataclass(frozen=True)
class Order:
    """A parsed `sort`: the field that the parameter names, the expression to sort by, and the direction."""

    name: str = "created_at"
    expression: Any = "created_at"
    is_descending: bool = False
    has_gaps: bool = False
    is_indexed: bool = True

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        column = F(self.expression) if isinstance(self.expression, str) else self.expression
        key = F("pk")
        last = True if self.has_gaps and self.is_descending else None
        return rows.order_by(*((column.desc(nulls_last=last), key.desc()) if self.is_descending else (column.asc(), key.asc())))


class Reading(Protocol):
    """How the rows of one list are read: its page first, then its total if the request has `include_totals`."""

    def page(self, rows: QuerySet[Any], order: Order, start: int, size: int) -> list[Any]: ...
    def total(self, rows: QuerySet[Any], order: Order) -> int: ...


class PlainReading:
    """Reads rows in the order of an index, and counts all of them."""

    def page(self, rows: QuerySet[Any], order: Order, start: int, size: int) -> list[Any]:
        return list(order.apply(rows)[start : start + size])

    def total(self, rows: QuerySet[Any], order: Order) -> int:
        return rows.count()


@dataclass(frozen=True)
class _Checkpoint:
    created_at: datetime
    key: int | str
    is_descending: bool


BY_CREATION = Order()
_PLAIN = PlainReading()


def order_of(query: QueryDict, sorts: Mapping[str, Any]) -> Order:
    """Parse `sort`: a field in `sorts`, then `:1` or `:-1`. `sorts` maps each field to the expression to sort by."""
    sent = text_of(query, "sort")
    if sent is None:
        return BY_CREATION
    name, _, direction = sent.partition(":")
    if name not in sorts or direction not in ("1", "-1"):
        raise invalid_query(f"Expected one of {', '.join(sorts)}, then :1 or :-1", "sort")
    chosen = sorts[name] if isinstance(sorts[name], SortBy) else SortBy(sorts[name])
    return Order(name, chosen.expression, direction == "-1", chosen.has_gaps, chosen.is_indexed)


def answer_list(
    rows: QuerySet[Any],
    query: QueryDict,
    listing: Listing,
    render: Render,
    *,
    order: Order = BY_CREATION,
    reading: Reading = _PLAIN,
) -> list[dict[str, Any]] | dict[str, Any]:
    """Return the list in the form and with the fields that the parameters request.

    Raises `Refusal` for invalid parameters.
    """
    project = projection_of(query, listing.fields, kept=listing.kept)

    def listed(row: Any) -> dict[str, Any]:
        document = render(row)
        return project.of_list(document, *listing.only_on_request) if listing.only_on_request else project(document)

    if listing.only_take:
        return _taken(rows, query, listing, listed, order, reading)
    # Parse these parameters in every form: the checkpoint form ignores valid values but refuses invalid values.
    has_totals = switch_of(query, "include_totals", default=False)
    page = number_of(query, "page", minimum=0) or 0
    size = number_of(query, "per_page", minimum=0 if listing.allows_empty_page else 1, maximum=LARGEST_PAGE)
    if query.get("take") or query.get("from"):
        return _taken(rows, query, listing, listed, order, reading)
    size = PAGE_SIZE if size is None else size
    _check_offset(page, size)
    start = page * size
    items = [listed(row) for row in reading.page(rows, order, start, size)] if size else []
    if not has_totals:
        return items
    length = {"length": len(items)} if listing.has_length else {}
    return {"start": start, "limit": size, **length, "total": reading.total(rows, order), listing.key: items}


def _check_offset(page: int, size: int) -> None:
    limit = settings.OFFSET_LIMIT
    if limit and (page + 1) * size > limit:
        raise Refusal(400, f"You can only page through the first {limit} records; use the checkpoint form.", "invalid_paging")


def _taken(rows: QuerySet[Any], query: QueryDict, listing: Listing, render: Render, order: Order, reading: Reading) -> dict[str, Any]:
    # A list without sort fields has only one order, so refuse a request for another order.
    if order.name != "created_at" or (order == BY_CREATION and text_of(query, "sort") not in (None, _BY_AGE)):
        raise invalid_query("The checkpoint form sorts only by `created_at`", "sort")
    take = number_of(query, "take", minimum=1, maximum=listing.largest_take) or PAGE_SIZE
    sent = text_of(query, "from")
    if sent:
        rows = _after(rows, _decoded(sent, rows, is_descending=order.is_descending))
    found: list[Model] = reading.page(rows, order, 0, take + 1)
    answer: dict[str, Any] = {listing.key: [render(row) for row in found[:take]]}
    if len(found) > take:
        answer["next"] = _encoded(found[take - 1], is_descending=order.is_descending)
    return answer


def _after(rows: QuerySet[Any], checkpoint: _Checkpoint) -> QuerySet[Any]:
    moment, key = checkpoint.created_at, checkpoint.key
    # The second condition (`lte` or `gte`) is a range of the index. It includes all rows with the time of the checkpoint. The first
    # condition drops those of them that an earlier page contained.
    if checkpoint.is_descending:
        return rows.filter(Q(created_at__lt=moment) | Q(pk__lt=key), created_at__lte=moment)
    return rows.filter(Q(created_at__gt=moment) | Q(pk__gt=key), created_at__gte=moment)


def _encoded(row: Any, *, is_descending: bool) -> str:
    moment = (row.created_at - _EPOCH) // timedelta(microseconds=1)
    return base64.urlsafe_b64encode(orjson.dumps([moment, row.pk, int(is_descending)])).decode().rstrip("=")


def _decoded(text: str, rows: QuerySet[Any], *, is_descending: bool) -> _Checkpoint:
    refusal = invalid_query("Not a checkpoint of this list", "from")
    if len(text) > _LONGEST_CHECKPOINT or not text.isascii():
        raise refusal
    try:
        moment, key, direction = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        checkpoint = _Checkpoint(_EPOCH + timedelta(microseconds=moment), key, bool(direction))
    except (ValueError, TypeError, OverflowError, binascii.Error) as error:
        raise refusal from error
    if not _is_key(key, rows.model) or checkpoint.is_descending is not is_descending:
        raise refusal
    return checkpoint


def _is_key(key: Any, model: type[Model]) -> bool:
    """Tell whether `key` can be a primary key of the listed rows. A checkpoint of another list can contain another kind of key."""
    if isinstance(model._meta.pk, IntegerField):
        return type(key) is int and abs(key) <= _LARGEST_KEY
    return isinstance(key, str) and text_problem(key) is None
