"""Consents of users to clients: `/grants`, `/grants/{id}`."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from authapi.accounts.access import withdraw_consent, withdraw_consents_of
from authapi.api.sign_in_documents import user_grant
from authapi.api.sign_in_schemas import GRANT_PARAMETERS, GRANTS_OF_USER, USER_GRANT_FIELDS, USER_GRANTS
from authapi.models import Consent
from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import text_of
from foundation.api.refusals import Refusal, invalid_query
from identity.api.users import INEXISTENT_USER
from identity.models import User

_FILTERS = {"user_id": "user__user_id", "client_id": "client__client_id", "audience": "audience"}


class UserGrantEndpoint(Endpoint):
    """Consents of users. Deleting a consent also revokes the refresh tokens that depend on it."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("list_grants", "List the consents of users", ("read:grants",), 200, USER_GRANTS, parameters=GRANT_PARAMETERS),
        "destroy": Operation(
            "delete_user_grants",
            "Delete all consents of a user",
            ("delete:grants",),
            204,
            parameters=GRANTS_OF_USER,
            refuses=(404,),
        ),
    }

    def list(self, request: Request) -> Response:
        rows = Consent.objects.select_related("user", "client")
        for name, column in _FILTERS.items():
            value = text_of(request.query_params, name)
            if value:
                rows = rows.filter(**{column: value})
        return Response(answer_list(rows, request.query_params, Listing("grants", USER_GRANT_FIELDS), user_grant))

    def destroy(self, request: Request) -> Response:
        user_id = text_of(request.query_params, "user_id")
        if user_id is None:
            raise invalid_query("Missing required property", "user_id")
        user = User.objects.filter(user_id=user_id).first()
        if user is None:
            raise Refusal(404, "The user does not exist.", INEXISTENT_USER)
        withdraw_consents_of(user)
        return Response(status=204)


class SingleUserGrantEndpoint(Endpoint):
    """One consent of a user to a client."""

    operations: ClassVar[dict[str, Operation]] = {
        "destroy": Operation("delete_grant", "Delete a consent of a user if it exists", ("delete:grants",), 204)
    }

    def destroy(self, request: Request, id: str) -> Response:
        key = int(id) if id.isascii() and id.isdigit() and len(id) < 19 else 0
        consent = Consent.objects.select_related("user", "client").filter(pk=key).first()
        if consent is not None:
            withdraw_consent(consent)
        return Response(status=204)
