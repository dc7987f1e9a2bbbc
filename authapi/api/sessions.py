"""Sessions of users: `/sessions/{id}`, `/users/{id}/sessions`, and revoking all access of a user."""

from __future__ import annotations

from typing import ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.accounts.access import revoke_access, revoke_session, update_session_metadata
from authapi.api.sign_in_documents import session_resource
from authapi.api.sign_in_schemas import ACCEPTED, SESSION, SESSION_FIELDS, SESSIONS
from authapi.login.sessions import end_session, end_sessions_of
from authapi.models import Initiator, Session
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, JsonObject, Switch, Text
from foundation.api.list_schemas import TAKE_FORM
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.refusals import invalid_body
from identity.api.lookups import user_at
from identity.services.failures import NotFound

MOST_METADATA = 25


class SessionToChange(Closed):
    session_metadata = JsonObject(required=False, allow_null=True, most=MOST_METADATA)


class AccessToRevoke(Closed):
    """The session to end. If it is absent, all sessions of the user end."""

    session_id = Text(required=False, max_length=50)
    preserve_refresh_tokens = Switch(required=False)


class SessionEndpoint(Endpoint):
    """A session: the login of one user in one browser."""

    operations: ClassVar[dict[str, Operation]] = {
        "retrieve": Operation("get_session", "Read a session", ("read:sessions",), 200, SESSION, refuses=(404,)),
        "partial_update": Operation(
            "update_session", "Change the metadata of a session", ("update:sessions",), 200, SESSION, SessionToChange, refuses=(404,)
        ),
        "destroy": Operation("delete_session", "End a session", ("delete:sessions",), 202, ACCEPTED, refuses=(404,)),
    }

    def retrieve(self, request: Request, id: str) -> Response:
        return Response(session_resource(_session_at(id)))

    def partial_update(self, request: Request, id: str) -> Response:
        body = self.body_of(request, SessionToChange)
        if not body:
            raise invalid_body("Too few properties defined (0), minimum 1", "body")
        update_session_metadata(tenant_id=self.tenant_id, session_id=id, metadata=body["session_metadata"] or {})
        return Response(session_resource(_session_at(id)))

    def destroy(self, request: Request, id: str) -> Response:
        end_session(_session_at(id), reason=Initiator.SESSION_REVOKED)
        return Response({}, status=202)


class SessionRevocationEndpoint(Endpoint):
    """Ends a session and revokes the refresh tokens issued in it."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "revoke_session",
            "End a session and revoke the refresh tokens issued in it",
            ("delete:sessions delete:refresh_tokens",),
            202,
            ACCEPTED,
            refuses=(404,),
        )
    }

    def create(self, request: Request, id: str) -> Response:
        revoke_session(_session_at(id))
        return Response({}, status=202)


class UserSessionEndpoint(Endpoint):
    """The sessions of a user."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_user_sessions", "List the sessions of a user", ("read:sessions",), 200, SESSIONS, parameters=TAKE_FORM, refuses=(404,)
        ),
        "destroy": Operation("delete_user_sessions", "End all sessions of a user", ("delete:sessions",), 202, ACCEPTED, refuses=(404,)),
    }

    def list(self, request: Request, id: str) -> Response:
        rows = _shown(Session.objects.filter(user=user_at(id)))
        return Response(answer_list(rows, request.query_params, Listing("sessions", SESSION_FIELDS, only_take=True), session_resource))

    def destroy(self, request: Request, id: str) -> Response:
        end_sessions_of(tenant_id=self.tenant_id, user_id=user_at(id).pk, reason=Initiator.SESSION_REVOKED)
        return Response({}, status=202)


class UserAccessEndpoint(Endpoint):
    """The access of a user: all sessions and refresh tokens together."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "revoke_user_access",
            "End one or all sessions of a user, and revoke their refresh tokens unless `preserve_refresh_tokens` is true",
            ("delete:sessions delete:refresh_tokens",),
            202,
            ACCEPTED,
            AccessToRevoke,
            refuses=(404,),
        )
    }

    def create(self, request: Request, id: str) -> Response:
        user, body = user_at(id), self.body_of(request, AccessToRevoke)
        revoke_access(user=user, session_id=body.get("session_id"), keeps_refresh_tokens=body.get("preserve_refresh_tokens", False))
        return Response({}, status=202)


def _session_at(session_id: str) -> Session:
    session = _shown(Session.objects.filter(pk=session_id)).first()
    if session is None:
        raise NotFound("The session does not exist.")
    return session


def _shown(rows: QuerySet[Session]) -> QuerySet[Session]:
    return rows.select_related("user").prefetch_related("session_clients__client")
