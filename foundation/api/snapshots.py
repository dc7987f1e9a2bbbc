"""Lists as snapshots: the first page's response has the cursor from which the stream continues the list."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import QueryDict
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.hooks import snapshot_cursor

CURSOR_HEADER = "X-Events-Cursor"


def with_cursor(answer: Callable[..., Response]) -> Callable[..., Response]:
    """Wrap the method of a list: the cursor is taken before any row is read, so the list and the stream together leave no gap."""

    @wraps(answer)
    def answer_snapshot(endpoint: Any, request: Request, **path: str) -> Response:
        cursor = snapshot_cursor.of(endpoint.tenant_id) if _is_first(request.query_params) else ""
        response = answer(endpoint, request, **path)
        if cursor:
            response[CURSOR_HEADER] = cursor
        return response

    return answer_snapshot


def _is_first(query: QueryDict) -> bool:
    """Tell whether these parameters, if valid, request the first page. If they contain `from` or `take`, `page` is ignored."""
    if query.get("from"):
        return False
    return bool(query.get("take")) or not (query.get("page") or "0").strip("0")
