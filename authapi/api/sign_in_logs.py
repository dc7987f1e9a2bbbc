"""The lines of the sign-in log and the administrative lines as one list: `/logs`, `/logs/{id}`, `/users/{id}/logs` (docs/adr/0086).

A list is either paged with totals, newest first, or starts at a checkpoint, oldest first. A checkpoint response is a plain array. To follow
the list, a client sends the `log_id` of the last line as the next checkpoint.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.sign_in_documents import log_line
from authapi.api.sign_in_schemas import LOG_FIELDS, LOG_LINE, LOG_LINES, LOG_PARAMETERS, USER_LOG_PARAMETERS
from authapi.logs.merged_log import Line, MergedLog, after, line_at, oldest_writer, settled_until
from authapi.logs.query import InvalidQuery, parsed_query
from authapi.models import SignIn
from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import PROJECTION
from foundation.api.operations import Operation
from foundation.api.paging import LARGEST_PAGE, PAGE_SIZE, Listing, Order, answer_list, order_of
from foundation.api.queries import number_of, projection_of, text_of
from foundation.api.refusals import invalid_query
from identity.api.lookups import user_at
from identity.services.failures import NotFound

_LISTING = Listing("logs", LOG_FIELDS, has_length=True)
_LOG_ID = re.compile("log_[A-Za-z0-9]{22}")
_SORTS = {"date": "created_at"}
_NEWEST_FIRST = Order("created_at", "created_at", is_descending=True)


class _BothTables:
    """Reads pages of `MergedLog` for `answer_list`. Ignores the rows that `answer_list` passes, because these rows come from only one
    table."""

    def __init__(self, condition: Q) -> None:
        self._log = MergedLog(condition)

    def page(self, rows: QuerySet[Any], order: Order, start: int, size: int) -> list[Any]:
        return self._log.page(start, size, is_descending=order.is_descending)

    def total(self, rows: QuerySet[Any], order: Order) -> int:
        return self._log.total()


class LogEndpoint(Endpoint):
    """Login attempts of users, and changes by clients and staff."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("list_logs", "Search or follow the log", ("read:logs",), 200, LOG_LINES, parameters=LOG_PARAMETERS),
        "retrieve": Operation("get_log", "Read a line of the log", ("read:logs",), 200, LOG_LINE, parameters=PROJECTION, refuses=(404,)),
    }

    def list(self, request: Request) -> Response:
        query = request.query_params
        project = projection_of(query, LOG_FIELDS)
        if query.get("from") or query.get("take"):
            return Response([project(log_line(row)) for row in _following(query)])
        return Response(_answer(query, _condition(query)))

    def retrieve(self, request: Request, id: str) -> Response:
        project = projection_of(request.query_params, LOG_FIELDS)
        row = line_at(id)
        if row is None:
            raise NotFound("The log line does not exist.")
        return Response(project(log_line(row)))


class UserLogEndpoint(Endpoint):
    """The log lines about one user."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_user_logs",
            "List the log lines of a user: login attempts, and changes to the user",
            ("read:logs_users", "read:logs"),
            200,
            LOG_LINES,
            parameters=USER_LOG_PARAMETERS,
            refuses=(404,),
        )
    }

    def list(self, request: Request, id: str) -> Response:
        return Response(_answer(request.query_params, Q(user_id=user_at(id).user_id)))


def _answer(query: QueryDict, condition: Q) -> Any:
    return answer_list(SignIn.objects.all(), _paged(query), _LISTING, log_line, order=_order(query), reading=_BothTables(condition))


def _condition(query: QueryDict) -> Q:
    name = "q" if text_of(query, "q") else "search"
    text = text_of(query, name)
    try:
        return parsed_query(text) if text else Q()
    except InvalidQuery as error:
        raise invalid_query(f"Invalid query: {error}", name) from error


def _order(query: QueryDict) -> Order:
    return order_of(query, _SORTS) if text_of(query, "sort") else _NEWEST_FIRST


def _paged(query: QueryDict) -> QueryDict:
    """Return the parameters without `take` and `from`, which `_following` reads. `answer_list` does not know checkpoints."""
    paged = query.copy()
    for name in ("take", "from"):
        paged.pop(name, None)
    return paged


def _following(query: QueryDict) -> list[Line]:
    """Return the lines after the line that `from` names. Without `from`, start at the oldest line."""
    # The checkpoint form ignores the order and the search, but invalid values of their parameters are still refused.
    _order(query), _condition(query)
    take = number_of(query, "take", minimum=1, maximum=LARGEST_PAGE) or PAGE_SIZE
    # First compute the newest time that a returned line may have, and then read the lines. A transaction that commits in between adds only
    # newer lines, which a later request returns.
    condition = Q(created_at__lte=settled_until(timezone.now(), oldest_writer()))
    sent = text_of(query, "from")
    if sent:
        if not _LOG_ID.fullmatch(sent):
            raise invalid_query("Not a checkpoint of this list", "from")
        known = line_at(sent)
        # If retention has deleted the line, all remaining lines are newer, so the reader continues with the oldest line.
        condition &= after(known) if known else Q()
    return MergedLog(condition).page(0, take, is_descending=False)
