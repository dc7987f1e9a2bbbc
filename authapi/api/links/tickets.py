"""Links that applications deliver to users: `/tickets/password-change`, `/tickets/email-verification`."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models.functions import Lower
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.accounts.handed_tickets import LIFE_SECONDS, MOST_LIFE_SECONDS, WayBack, create_email_ticket, create_password_ticket
from authapi.api.clients import INEXISTENT_CLIENT
from authapi.models import Client
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, Email, Switch, Text
from foundation.api.operations import TEXT, Operation, Schema
from foundation.api.refusals import Refusal, invalid_body, not_supported
from identity.api.job_bodies import WholeNumber
from identity.api.lookups import connection_at, organization_at
from identity.api.relation_bodies import connection_id, organization_id
from identity.api.requested import base_of
from identity.api.user_bodies import UserId
from identity.api.users import INEXISTENT_USER
from identity.models import Connection, User

# As in the upstream system, clients send this value as `provider` for a user with a password.
_DATABASE = "auth0"
_LINK: Schema = {"type": "object", "required": ["ticket"], "properties": {"ticket": {**TEXT, "description": "The link."}}}
_SCOPES = ("create:user_tickets",)


class TicketIdentity(Closed):
    user_id = UserId(max_length=300, help_text="The user id of the identity, with or without the prefix of the provider.")
    provider = Text(max_length=40)
    connection_id = connection_id(required=False)


class TicketSettings(Closed):
    """Members of both kinds of tickets."""

    result_url = Text(
        required=False, max_length=2048, help_text="The page of the link redirects to this URL. The outcome is in its query parameters."
    )
    client_id = Text(required=False, max_length=64, help_text="The application. The page links to its login URL.")
    organization_id = organization_id(required=False)
    ttl_sec = WholeNumber(
        required=False, min_value=0, max_value=MOST_LIFE_SECONDS, help_text="Lifetime of the link in seconds. 0 or absent: five days."
    )
    includeEmailInRedirect = Switch(required=False)  # noqa: N815  (a name of the API)


class EmailToVerify(TicketSettings):
    user_id = Text(max_length=300)
    identity = TicketIdentity(required=False)


class PasswordToChange(TicketSettings):
    user_id = Text(required=False, max_length=300)
    email = Email(required=False)
    connection_id = connection_id(required=False)
    new_password = Text(
        required=False, max_length=4096, help_text="The page of the link asks the user to accept this password, and does not show it."
    )
    mark_email_as_verified = Switch(required=False)
    identity = TicketIdentity(required=False)


class EmailTicketEndpoint(Endpoint):
    """A link that verifies an email address of a user."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "create_email_verification_ticket",
            "Create a link that verifies an email address",
            _SCOPES,
            201,
            _LINK,
            EmailToVerify,
            refuses=(404,),
        ),
    }

    def create(self, request: Request) -> Response:
        body = self.body_of(request, EmailToVerify)
        if "result_url" in body and ("client_id" in body or "organization_id" in body):
            raise invalid_body("Cannot be specified together with client_id or organization_id", "result_url")
        user, named = _user_with_id(body["user_id"]), body.get("identity")
        identity = (named["provider"], named["user_id"]) if named else None
        link = create_email_ticket(user=user, way_back=_way_back(body), identity=identity, address=base_of(request))
        return Response({"ticket": link}, status=201)


class PasswordTicketEndpoint(Endpoint):
    """A link that sets a new password."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "create_password_change_ticket",
            "Create a link that sets a new password",
            _SCOPES,
            201,
            _LINK,
            PasswordToChange,
            refuses=(404,),
        ),
    }

    def create(self, request: Request) -> Response:
        body = self.body_of(request, PasswordToChange)
        if "result_url" in body and "organization_id" in body:
            raise invalid_body("Cannot be specified together with organization_id", "result_url")
        link = create_password_ticket(
            user=_user(body),
            way_back=_way_back(body),
            marks_verified=body.get("mark_email_as_verified", False),
            password=body.get("new_password", ""),
            address=base_of(request),
        )
        return Response({"ticket": link}, status=201)


def _way_back(body: dict[str, Any]) -> WayBack:
    return WayBack(
        result_url=body.get("result_url", ""),
        tells_email=body.get("includeEmailInRedirect", False),
        client=_client(body["client_id"]) if "client_id" in body else None,
        organization=organization_at(body["organization_id"]) if "organization_id" in body else None,
        life_seconds=body.get("ttl_sec") or LIFE_SECONDS,
    )


def _client(client_id: str) -> Client:
    client = Client.objects.filter(client_id=client_id, revoked_at__isnull=True).first()
    if client is None:
        raise Refusal(404, "The client does not exist.", INEXISTENT_CLIENT)
    return client


def _user(body: dict[str, Any]) -> User:
    """Return the user with the given id, or with the given email address in a connection."""
    by_id, by_address = "user_id" in body, "email" in body or "connection_id" in body
    if by_id and by_address:
        raise invalid_body("Cannot be specified together with email or connection_id", "user_id")
    if by_id:
        user = _user_with_id(body["user_id"])
        _check_identity(user, body.get("identity"))
        return user
    for name in ("email", "connection_id"):
        if name not in body:
            raise invalid_body("Missing required property", "user_id" if not by_address else name)
    if "identity" in body:
        raise invalid_body("Needs user_id", "identity")
    return _user_with_address(connection_at(body["connection_id"]), body["email"])


def _user_with_id(user_id: str) -> User:
    user = User.objects.filter(user_id=user_id).first()
    if user is None:
        raise Refusal(404, "The user does not exist.", INEXISTENT_USER)
    return user


def _user_with_address(connection: Connection, email: str) -> User:
    rows = User.objects.filter(connection=connection).annotate(lower_email=Lower("email"))
    user = rows.filter(lower_email=email.lower()).first()
    if user is None:
        raise Refusal(404, "The user does not exist.", INEXISTENT_USER)
    return user


def _check_identity(user: User, named: dict[str, Any] | None) -> None:
    """Refuse a linked identity, because only the primary identity has a password."""
    if named is None:
        return
    is_primary = str(named["user_id"]) in (user.user_id, user.identifier) and named["provider"] in (_DATABASE, user.provider)
    if not is_primary or named.get("connection_id", user.connection_id) != user.connection_id:
        raise not_supported("Only the primary identity of a user has a password.")
