"""Users: `/users`, `/users/{id}`, `/users-by-email`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import Prefetch, QuerySet, Value
from django.db.models.functions import Lower
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import PROJECTION
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import projection_of, text_of
from foundation.api.refusals import Refusal, invalid_path, invalid_query, not_supported
from foundation.timestamps import wire_time
from identity.api.requested import base_of
from identity.api.user_bodies import UNSTORED, UserToChange, UserToCreate
from identity.api.user_schemas import EMAIL, LIST_PARAMETERS, USER, USER_FIELDS, USERS
from identity.api.user_search import asked_search
from identity.documents import user_document
from identity.mail.verification import create_user_with_mail, update_user_with_mail
from identity.models import Connection, LinkedIdentity, User
from identity.services import users
from identity.services.failures import AlreadyExists, NotFound
from identity.services.profile_rules import PasswordTooWeak, check_new_profile, check_profile_change

INEXISTENT_USER = "inexistent_user"
_JUDGED_BY_CONNECTION = {"connection", "email", "username", "phone_number", "password", "email_verified"}
_LISTING = Listing("users", USER_FIELDS, has_length=True, allows_empty_page=True)


class UserEndpoint(Endpoint):
    """The users of a tenant."""

    not_found_code = INEXISTENT_USER
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_users",
            "List users",
            ("read:users",),
            200,
            USERS,
            parameters=LIST_PARAMETERS,
            refuses=(503,),
            snapshot_of="user",
        ),
        "create": Operation("create_user", "Create a user", ("create:users",), 201, USER, UserToCreate, refuses=(409,)),
        "retrieve": Operation("get_user", "Read a user", ("read:users",), 200, USER, parameters=PROJECTION, refuses=(404,)),
        "partial_update": Operation(
            "update_user",
            "Change a user; metadata is merged at its first level",
            ("update:users", "update:users_app_metadata"),
            200,
            USER,
            UserToChange,
            refuses=(404, 409),
        ),
        "destroy": Operation("delete_user", "Delete a user, if the user exists", ("delete:users",), 204),
    }

    def list(self, request: Request) -> Response:
        query = request.query_params
        asked = asked_search(query, self.tenant_id)
        rows = with_identities(User.objects.all())
        name = text_of(query, "connection")
        if name:
            # Filters by key, so that the index of a connection's users serves the page.
            rows = rows.filter(connection__in=list(Connection.objects.filter(name=name).values_list("pk", flat=True)))
        with asked.reading() as reading:
            return Response(answer_list(rows, query, _LISTING, listed_user, order=asked.order, reading=reading))

    def create(self, request: Request) -> Response:
        body = self.body_of(request, UserToCreate)
        connection = Connection.objects.filter(name=body.pop("connection")).first()
        if connection is None:
            raise Refusal(400, "The connection does not exist.", "inexistent_connection")
        profile = {name: value for name, value in body.items() if value is not None and name not in UNSTORED}
        with password_refused():
            check_new_profile(connection, profile)
        identifier = profile.pop("user_id", "")
        created = {"tenant_id": self.tenant_id, "connection": connection, "identifier": identifier, **profile}
        try:
            user = create_user_with_mail(asked=body.get("verify_email"), address=base_of(request), **created)
        except AlreadyExists as error:
            raise Refusal(409, "The user already exists.", f"{settings.DATABASE_STRATEGY}_idp_error") from error
        return Response(user_resource(user, []), status=201)

    def retrieve(self, request: Request, id: str) -> Response:
        project = projection_of(request.query_params, USER_FIELDS)
        return Response(project(listed_user(self._found(id))))

    def partial_update(self, request: Request, id: str) -> Response:
        check_user_id(id)
        changes = self.body_of(request, UserToChange)
        if changes.keys() - {"app_metadata"}:
            self.require_scope(request, "update:users")
        unstored = {name: changes.pop(name, None) for name in UNSTORED}
        if changes.keys() & _JUDGED_BY_CONNECTION:
            self._check_against_connection(id, changes)
        if unstored["verify_email"]:
            named = {"tenant_id": self.tenant_id, "user_id": id, "client_id": unstored["client_id"] or ""}
            return Response(user_resource(update_user_with_mail(**named, changes=changes, address=base_of(request))))
        if not changes:
            return Response(listed_user(self._found(id)))
        user = users.update_user(tenant_id=self.tenant_id, user_id=id, changes=changes)
        return Response(user_resource(user))

    def destroy(self, request: Request, id: str) -> Response:
        check_user_id(id)
        try:
            users.delete_user(tenant_id=self.tenant_id, user_id=id)
        except NotFound:
            # Clients repeat a delete if its response was lost, so a missing row is a success.
            return Response(status=204)
        return Response(status=204)

    def _found(self, user_id: str) -> User:
        check_user_id(user_id)
        user = with_identities(User.objects.filter(user_id=user_id)).first()
        if user is None:
            raise NotFound("The user does not exist.")
        return user

    def _check_against_connection(self, user_id: str, changes: dict[str, Any]) -> None:
        """Check the changes against the user's connection. No lock is needed, because the connection of a user never changes."""
        user = User.objects.select_related("connection").filter(user_id=user_id).first()
        if user is None:
            raise NotFound("The user does not exist.")
        if changes.pop("connection", user.connection.name) != user.connection.name:
            raise not_supported(
                "Only the primary identity of a user can be changed, and the primary identity belongs to another connection."
            )
        with password_refused():
            check_profile_change(user, changes)


class UsersByEmailEndpoint(Endpoint):
    """Users by their exact email address; letter case is ignored."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_users_by_email",
            "Find users by email address",
            ("read:users",),
            200,
            {"type": "array", "items": USER},
            parameters=(EMAIL, *PROJECTION),
        )
    }

    def list(self, request: Request) -> Response:
        email = text_of(request.query_params, "email")
        if email is None:
            raise invalid_query("Missing required property", "email")
        project = projection_of(request.query_params, USER_FIELDS)
        rows = User.objects.annotate(lower_email=Lower("email")).filter(lower_email=Lower(Value(email)))
        return Response([project(listed_user(user)) for user in with_identities(rows).order_by("created_at", "pk")])


def with_identities(rows: QuerySet[User]) -> QuerySet[User]:
    """Add all rows that documents of users show. Costs two statements for any number of users."""
    linked = LinkedIdentity.objects.select_related("connection").order_by("pk")
    return rows.select_related("connection").prefetch_related(Prefetch("linked_identities", linked))


def listed_user(user: User) -> dict[str, Any]:
    """Return the document of a user that was read by `with_identities`."""
    return user_resource(user, list(user.linked_identities.all()))


def user_resource(user: User, linked: Sequence[LinkedIdentity] | None = None) -> dict[str, Any]:
    """Return the document of a user with the members that only the management interface shows."""
    document = user_document(user, linked)
    if user.last_password_reset:
        document["last_password_reset"] = wire_time(user.last_password_reset)
    return document


def check_user_id(user_id: str) -> None:
    """Refuse a path id that no user can have."""
    if "|" not in user_id:
        raise invalid_path("Object didn't pass validation for format user-id", "id")


@contextmanager
def password_refused() -> Iterator[None]:
    """Refuse a weak password with the text that clients parse."""
    try:
        yield
    except PasswordTooWeak as error:
        raise Refusal(400, f"{error.problem.weakness.value}: {error.problem.text}", "invalid_body") from error
