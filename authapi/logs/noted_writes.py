"""Collects what the administrative log stores about a management write, from request, token and response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.edge.addresses import origin_of
from authapi.logs.noted_requests import noted_body, noted_message, noted_path, noted_query, noted_text
from authapi.services.administrative_log import Writing, note_answer
from authapi.tokens.verifying import VerifiedToken
from foundation.api.operations import Operation
from foundation.json_values import storable

_LONGEST_CORRELATION_ID = 64
# In the paths of these collections, the id of a user follows the name of the collection: `users/{id}/...`. Other paths may contain the id
# of a user as `.../members/{user_id}/...`.
_OF_USERS = frozenset({"users", "user-blocks"})
_PREFIX = "/api/v2/"
# In the body of this operation, `user_id` is only a part of the id that the new user gets. In other bodies, `user_id` names an existing
# user.
_CREATE_USER = "create_user"


def writing_of(request: Request, claims: VerifiedToken, operation: Operation, kwargs: Mapping[str, str], tenant_id: str) -> Writing:
    """Return the write that a request starts. The body is read later, after its validation."""
    meta = request.META
    origin = origin_of(meta.get("REMOTE_ADDR") or "", meta.get("HTTP_X_FORWARDED_FOR", ""), settings.TRUSTED_PROXIES)
    allowing = [scope for scope in operation.single_scopes if scope in claims.scopes]
    return Writing(
        tenant_id=tenant_id,
        operation=operation.id,
        act=operation.act,
        status=operation.status,
        client_id=claims.client_id,
        client_name=claims.client_name,
        scope=" ".join(allowing),
        ip=origin.address,
        user_agent=meta.get("HTTP_USER_AGENT", ""),
        user_id=noted_text(_user_in_path(request, kwargs) or request.query_params.get("user_id", "")),
        request=_request_document(request, claims, allowing),
        read_body=lambda: _body_of(request, operation),
    )


def note_response(under_way: Writing, response: Response) -> None:
    """Write the administrative line of a write after its response, unless the transaction of the write has already written the line."""
    message = response.data.get("message", "") if isinstance(response.data, dict) else ""
    note_answer(under_way, status=response.status_code, message=noted_message(str(message)))


def _request_document(request: Request, claims: VerifiedToken, allowing: list[str]) -> dict[str, Any]:
    document: dict[str, Any] = {
        "method": (request.method or "").lower(),
        "path": noted_path(_sent_path(request)),
        "query": noted_query(request.query_params.lists()),
        "channel": "api",
        "auth": {"credentials": {"jti": claims.jti, "scopes": allowing}, "strategy": "jwt"},
    }
    correlation_id = request.headers.get("X-Correlation-ID", "")
    if 0 < len(correlation_id) <= _LONGEST_CORRELATION_ID:
        document["correlation_id"] = storable(correlation_id)
    return document


def _sent_path(request: Request) -> str:
    """Return the path as it was sent, with encoded ids (`foundation.api.paths`)."""
    return str(request._request.path_info)


def _user_in_path(request: Request, kwargs: Mapping[str, str]) -> str:
    collection = _sent_path(request).removeprefix(_PREFIX).partition("/")[0]
    return kwargs.get("id", "") if collection in _OF_USERS else kwargs.get("user_id", "")


def _body_of(request: Request, operation: Operation) -> tuple[Any, str]:
    """Return the body without secrets, and the id of the user in the body."""
    if operation.body is None:
        return None, ""
    body = request.data
    named = body.get("user_id") if isinstance(body, dict) and operation.id != _CREATE_USER else None
    return noted_body(body), noted_text(named) if isinstance(named, str) else ""
