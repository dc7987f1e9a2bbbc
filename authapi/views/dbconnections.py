"""`POST /dbconnections/signup` and `/dbconnections/change_password`, for applications with their own forms.

Their error body differs from the error body of other endpoints: `{name, code, description, statusCode}` (contract 2.10 and 8).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from authapi.accounts.event_context import context_of
from authapi.accounts.password_reset import TooManyRequests, ask_for_reset
from authapi.accounts.password_rules import as_text, rules_of
from authapi.accounts.sign_up import Reason, SignUp, SignUpRefused, sign_up
from authapi.accounts.sign_up_rules import IDENTIFIERS, NAMES
from authapi.client_auth import check_origin
from authapi.edge.bodies import MalformedBody, parse_body
from authapi.edge.languages import request_language
from authapi.edge.throttling import Rate
from authapi.login.connections import client_connections, named_database, takes_passwords
from authapi.models import Client
from authapi.views.chain import Answer, Call, Later, hot_endpoint, json_answer
from foundation.change_context import change_context
from foundation.tenancy import tenant_bound
from identity.languages import asked_in
from identity.models import Connection, User
from identity.passwords import Weakness
from identity.services.profile_rules import PasswordTooWeak

RESET_SENT = "We've just sent you an email to reset your password."
_PRIVATE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_LONGEST_PASSWORD = 4096


class _Problem(Exception):
    """An error answer. An answer with 429 has the headers of the bucket that refused the request."""

    def __init__(
        self, code: str, description: Any, *, name: str = "BadRequestError", status: int = 400, rate: Rate | None = None, **more: Any
    ) -> None:
        super().__init__(code)
        self.status = status
        self.headers = {**_PRIVATE, **(rate.headers if rate is not None else {})}
        self.body = {"name": name, "code": code, "description": description, **more, "statusCode": status}


@dataclass(frozen=True)
class _DirectoryRequest:
    """A client's request about an account of a database connection."""

    call: Call
    form: Mapping[str, Any]
    client: Client | None
    connection: Connection

    def text(self, name: str) -> str:
        return _text(self.form, name)


def _signup(call: Call) -> Later:
    # Every sign-up hashes a password, so sign-ups run in the threads for slow work.
    return Later(partial(_answered, call, _sign_up))


def _change_password(call: Call) -> Answer:
    return _answered(call, _ask_for_reset)


def _answered(call: Call, act: Any) -> Answer:
    try:
        form = parse_body(call.headers.get("content-type", ""), call.body)
        with tenant_bound(call.host.tenant_id), asked_in(request_language(call.headers, call.host.tenant_id)):
            client = _client(call, form)
            answer: Answer = act(_DirectoryRequest(call, form, client, _connection(call, form, client)))
            return answer
    except MalformedBody as error:
        problem = _Problem("invalid_request", str(error))
    except _Problem as found:
        problem = found
    return json_answer(problem.body, status=problem.status, headers=problem.headers)


def _sign_up(request: _DirectoryRequest) -> Answer:
    form, call = request.form, request.call
    password = request.text("password")
    if not password or len(password) > _LONGEST_PASSWORD:
        raise _missing("password")
    profile = {name: form[name] for name in (*IDENTIFIERS, *NAMES) if name in form}
    if "user_metadata" in form:
        profile["user_metadata"] = _object(form["user_metadata"])
    agent = call.headers.get("user-agent", "")
    wanted = SignUp(
        connection=request.connection,
        password=password,
        profile=profile,
        client=request.client,
        ip=call.address,
        user_agent=agent,
        address=call.host.issuer.rstrip("/"),
    )
    try:
        with change_context(context_of(call.host, request.client, ip=call.address, user_agent=agent)):
            user = sign_up(wanted)
    except SignUpRefused as refused:
        raise _refusal(request.connection, password, refused) from refused
    return json_answer(_created(user), headers=_PRIVATE)


def _ask_for_reset(request: _DirectoryRequest) -> Answer:
    call = request.call
    identifier = next((text for name in IDENTIFIERS if (text := request.text(name))), "")
    if not identifier:
        raise _missing("email")
    try:
        ask_for_reset(
            connection=request.connection,
            identifier=identifier,
            client=request.client,
            ip=call.address,
            user_agent=call.headers.get("user-agent", ""),
            address=call.host.issuer.rstrip("/"),
        )
    except TooManyRequests as error:
        raise _Problem("too_many_requests", str(error), name="TooManyRequests", status=429, rate=error.rate) from error
    # The answer is the same for an unknown user: a worker looks up the account later.
    return Answer(200, RESET_SENT.encode(), {"Content-Type": "text/html; charset=utf-8", **_PRIVATE})


def _client(call: Call, form: Mapping[str, Any]) -> Client | None:
    """Return the client of the request. Without `client_id`, return the tenant's global client, if there is one (contract 5)."""
    clients = Client.objects.of(call.host.tenant_id).filter(revoked_at__isnull=True)
    client_id = _text(form, "client_id")
    if not client_id:
        return clients.filter(is_global=True).order_by("created", "pk").first()
    client = clients.filter(client_id=client_id).first()
    if client is None:
        raise _Problem("unauthorized", "The client does not exist.", name="UnauthorizedError")
    check_origin(client, call.headers.get("origin"))
    return client


def _connection(call: Call, form: Mapping[str, Any], client: Client | None) -> Connection:
    name = _text(form, "connection") or _text(form, "realm")
    if not name:
        raise _missing("connection")
    found = named_database(call.host.tenant_id, name)
    if found is None:
        raise _Problem("invalid_request", "The connection does not exist.")
    if _text(form, "client_id") and client is not None:
        if not _is_enabled(client, found):
            raise _Problem("unauthorized", "The connection is not enabled for the client.", name="UnauthorizedError")
    elif not _is_in_use(found):
        raise _Problem("unauthorized", "The connection is not enabled for any client.", name="UnauthorizedError")
    return found


def _is_enabled(client: Client, connection: Connection) -> bool:
    return takes_passwords(connection) and any(one.pk == connection.pk for one in client_connections(client))


def _is_in_use(connection: Connection) -> bool:
    """Tell whether a client of the tenant uses the connection.

    Client ids are public, so a request without a client id may do the same as a request with a client id.
    """
    named = Client.objects.of(connection.tenant_id).filter(client_id__in=connection.enabled_clients, revoked_at__isnull=True)
    return takes_passwords(connection) and named.exists()


def _refusal(connection: Connection, password: str, refused: SignUpRefused) -> _Problem:
    match refused.reason:
        case Reason.DISABLED:
            return _Problem("unauthorized", "Public sign-up is disabled for this connection.", name="UnauthorizedError")
        case Reason.SUSPICIOUS_ADDRESS:
            text = "Too many sign-ups from this IP address."
            return _Problem("too_many_attempts", text, name="TooManyRequests", status=429, rate=refused.rate)
        case Reason.INVALID:
            field, text = next(iter(refused.fields.items()))
            return _Problem("invalid_request", f"{field}: {text}")
        case Reason.PASSWORD_TOO_WEAK if refused.weak is not None:
            return _weak(connection, password, refused.weak)
        case _:
            # All cases that would reveal which accounts exist get the same answer.
            return _Problem("invalid_signup", "Invalid sign up")


def _weak(connection: Connection, password: str, weak: PasswordTooWeak) -> _Problem:
    name = weak.problem.weakness.value
    if weak.problem.weakness is Weakness.BREACHED:
        return _Problem("password_leaked", weak.problem.text, name=name)
    if weak.problem.weakness is not Weakness.STRENGTH:
        return _Problem("invalid_password", weak.problem.text, name=name, message=weak.problem.text)
    rules = rules_of(connection.options, password)
    described = {"rules": rules, "verified": False}
    return _Problem("invalid_password", described, name=name, message="Password is too weak", policy=as_text(rules))


def _created(user: User) -> dict[str, Any]:
    shown: dict[str, Any] = {"_id": user.identifier}
    if user.email:
        shown.update(email=user.email, email_verified=user.email_verified)
    if user.username:
        shown["username"] = user.username
    if user.phone_number:
        shown.update(phone_number=user.phone_number, phone_verified=user.phone_verified)
    return shown


def _text(form: Mapping[str, Any], name: str) -> str:
    value = form.get(name, "")
    if not isinstance(value, str):
        raise _Problem("invalid_request", f"The parameter {name} must be a string.")
    return value


def _object(value: Any) -> Any:
    """Return the object that a form sends as JSON text, otherwise the value itself."""
    try:
        return orjson.loads(value) if isinstance(value, str) else value
    except orjson.JSONDecodeError:
        return value


def _missing(parameter: str) -> _Problem:
    return _Problem("invalid_request", f"Missing or invalid parameter: {parameter}")


signup = hot_endpoint(_signup, name="signup", methods=("POST",))
change_password = hot_endpoint(_change_password, name="change_password", methods=("POST",))
