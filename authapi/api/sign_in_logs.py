"""The sign-in log: `/logs`, `/logs/{id}`, `/users/{id}/logs`.

Page by page with totals, newest first, or from a checkpoint on, oldest first: then the answer is a bare list, and whoever
follows the log asks again from the `log_id` of its last line.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.sign_in_documents import log_line
from authapi.api.sign_in_schemas import LOG_FIELDS, LOG_LINE, LOG_LINES, LOG_PARAMETERS, USER_LOG_PARAMETERS
from authapi.log_query import InvalidQuery, parsed_query
from authapi.models import SignIn
from identity.api.endpoint import Endpoint
from identity.api.list_schemas import PROJECTION
from identity.api.lookups import user_at
from identity.api.operations import Operation
from identity.api.paging import LARGEST_PAGE, PAGE_SIZE, Listing, Order, answer_list, order_of
from identity.api.queries import number_of, projection_of, text_of
from identity.api.refusals import invalid_query
from identity.services.failures import NotFound

_LISTING = Listing("logs", LOG_FIELDS, has_length=True)
_SORTS = {"date": "created_at"}
# A line has the time of its making and is seen with the commit, a little later: whoever follows must not pass it by.
_SETTLED = timedelta(seconds=5)
_NEWEST_FIRST = Order("created_at", "created_at", is_descending=True)


class LogEndpoint(Endpoint):
    """What people tried, and how it ended."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("list_logs", "Search or follow the sign-in log", ("read:logs",), 200, LOG_LINES, parameters=LOG_PARAMETERS),
        "retrieve": Operation(
            "get_log", "Read a line of the sign-in log", ("read:logs",), 200, LOG_LINE, parameters=PROJECTION, refuses=(404,)
        ),
    }

    def list(self, request: Request) -> Response:
        query = request.query_params
        project = projection_of(query, LOG_FIELDS)
        if query.get("from") or query.get("take"):
            return Response([project(log_line(row)) for row in _following(query)])
        rows = SignIn.objects.filter(_condition(query))
        return Response(answer_list(rows, _paged(query), _LISTING, log_line, order=_order(query)))

    def retrieve(self, request: Request, id: str) -> Response:
        project = projection_of(request.query_params, LOG_FIELDS)
        row = SignIn.objects.filter(pk=id).first()
        if row is None:
            raise NotFound("The log line does not exist.")
        return Response(project(log_line(row)))


class UserLogEndpoint(Endpoint):
    """The sign-in log of one user."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_user_logs",
            "List what a user tried",
            ("read:logs_users", "read:logs"),
            200,
            LOG_LINES,
            parameters=USER_LOG_PARAMETERS,
            refuses=(404,),
        )
    }

    def list(self, request: Request, id: str) -> Response:
        rows = SignIn.objects.filter(user_id=user_at(id).user_id)
        query = request.query_params
        return Response(answer_list(rows, _paged(query), _LISTING, log_line, order=_order(query)))


def _condition(query: QueryDict) -> Q:
    name = "q" if text_of(query, "q") else "search"
    text = text_of(query, name)
    try:
        return parsed_query(text) if text else Q()
    except InvalidQuery as error:
        raise invalid_query(f"Not a query: {error}", name) from error


def _order(query: QueryDict) -> Order:
    return order_of(query, _SORTS) if text_of(query, "sort") else _NEWEST_FIRST


def _paged(query: QueryDict) -> QueryDict:
    """Return the parameters without those of the checkpoint form, which is another one here."""
    paged = query.copy()
    for name in ("take", "from"):
        paged.pop(name, None)
    return paged


def _following(query: QueryDict) -> QuerySet[SignIn, Any]:
    """Return the lines after the one that `from` names, from the oldest on when it names none."""
    _order(query)
    take = number_of(query, "take", minimum=1, maximum=LARGEST_PAGE) or PAGE_SIZE
    rows, sent = SignIn.objects.filter(created_at__lte=timezone.now() - _SETTLED), text_of(query, "from")
    if sent:
        known = SignIn.objects.filter(pk=sent).first()
        if known is None:
            raise invalid_query("Not a checkpoint of this list", "from")
        moment = known.created_at
        # The first condition alone is a range of the index; the second drops what was already shown of that very moment.
        rows = rows.filter(Q(created_at__gt=moment) | Q(pk__gt=known.pk), created_at__gte=moment)
    return rows.order_by("created_at", "pk")[:take]
