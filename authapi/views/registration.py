"""`/oidc/register`: applications register themselves (RFC 7591), and read, replace or delete their registration (RFC 7592)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import parse_qs

from django.conf import settings

from authapi.edge.addresses import customer_keys
from authapi.edge.bodies import MalformedBody, parse_body
from authapi.edge.buckets import Bucket
from authapi.edge.rate_figures import REGISTRATIONS_OF_PLACE, REGISTRATIONS_OF_TENANT
from authapi.edge.throttling import Rate
from authapi.failures import Case, RequestRefused
from authapi.failures.registration import RegistrationCase
from authapi.models import Client
from authapi.protocols.oauth.registration.information import PATH, client_information
from authapi.protocols.oauth.registration.metadata import registration_of
from authapi.services.administrative_log import note_registration
from authapi.services.clients import delete_client
from authapi.services.initial_tokens import is_initial_token, use_initial_token
from authapi.services.registered_clients import (
    Registered,
    Registration,
    managed_client,
    register_client,
    registered_count,
    replace_registration,
)
from authapi.tenant_settings import sign_in_settings
from authapi.views.chain import Answer, Call, hot_endpoint, json_answer
from foundation.database.transactions import lock_rows, unit_of_work
from foundation.json_values import storable
from foundation.tenancy import tenant_bound
from identity.services.failures import AlreadyExists, Conflict, Invalid, NotFound, NotSupported

_FRESH = {"Cache-Control": "no-store", "Pragma": "no-cache"}
Done = TypeVar("Done")
_BEARER = "bearer "
_LONGEST_TOKEN = 256
_LONGEST_ID = 64
# The service sets these members. A client must not send them (RFC 7592, 2.2).
_HANDED_OUT = ("registration_access_token", "registration_client_uri", "client_secret_expires_at", "client_id_issued_at")


def _registration(call: Call) -> Answer:
    with tenant_bound(call.host.tenant_id):
        if not sign_in_settings(call.host.tenant_id).takes_registrations:
            raise RequestRefused(RegistrationCase.OFF)
        if call.method == "POST":
            return _made(call)
        client = _managed(call)
        match call.method:
            case "PUT":
                return _replaced(call, client)
            case "DELETE":
                _delete(call, client)
                return Answer(204, b"", _FRESH)
            case _:
                return json_answer(client_information(client, call.host, token=_token(call)), headers=_FRESH)


def _made(call: Call) -> Answer:
    registration = _in_words(lambda: registration_of(_members(call)))
    token = _token(call)
    if not token and sign_in_settings(call.host.tenant_id).requires_initial_token:
        raise _unproven(RegistrationCase.TOKEN_NEEDED)
    _take_of_place(call)
    if token and not is_initial_token(tenant_id=call.host.tenant_id, token=token):
        # The token is checked before the request counts against the tenant's limit of registrations: requests with forged tokens must not
        # use up this limit.
        raise _unproven(RegistrationCase.INVALID_INITIAL_TOKEN)
    _count(REGISTRATIONS_OF_TENANT, call.host.tenant_id)
    made = _in_words(lambda: _register(call, registration, token))
    return json_answer(client_information(made.client, call.host, token=made.token, secret=made.secret), status=201, headers=_FRESH)


@unit_of_work
def _register(call: Call, registration: Registration, token: str) -> Registered:
    """Create the client, count a use of its initial access token, if any, and write the line for `GET /logs`, all in one transaction."""
    tenant_id = call.host.tenant_id
    used = use_initial_token(tenant_id=tenant_id, token=token) if token else None
    if token and used is None:
        raise _unproven(RegistrationCase.INVALID_INITIAL_TOKEN)
    if registered_count(tenant_id) >= settings.REGISTERED_CLIENTS_MAX:
        raise RequestRefused(RegistrationCase.FULL)
    made = register_client(tenant_id=tenant_id, registration=registration)
    _note(call, made.client, act="Register a client", status=201, initial_token=used.name if used is not None else "")
    return made


def _replaced(call: Call, client: Client) -> Answer:
    members = _members(call)
    if members.get("client_id") != client.client_id:
        raise _refused("The client_id must be the client_id of the registration.")
    sent = [name for name in _HANDED_OUT if name in members]
    if sent:
        raise _refused(f"This service sets the member {sent[0]}: leave it out.")
    secret = members.get("client_secret")
    if secret is not None and not (isinstance(secret, str) and client.secret_matches(secret)):
        raise _refused("The client_secret is not the current secret. A client does not choose its secret: leave client_secret out.")
    registration = _in_words(lambda: registration_of(members))
    changed = _in_words(lambda: _replace(call, client, registration))
    return json_answer(client_information(changed.client, call.host, token=changed.token, secret=changed.secret), headers=_FRESH)


@unit_of_work
def _replace(call: Call, client: Client, registration: Registration) -> Registered:
    client = _locked(call, client)
    changed = replace_registration(tenant_id=client.tenant_id, client_id=client.client_id, registration=registration)
    _note(call, changed.client, act="Change a client that registered itself", status=200)
    return changed


@unit_of_work
def _delete(call: Call, client: Client) -> None:
    client = _locked(call, client)
    delete_client(tenant_id=client.tenant_id, client_id=client.client_id)
    _note(call, client, act="Delete a client that registered itself", status=204)


def _locked(call: Call, client: Client) -> Client:
    """Return the client with its row locked. Checks the token again: an administrator may have revoked the client, or
    made it a first-party client, after the first check."""
    lock_rows(Client, [client.pk])
    return _managed(call)


def _managed(call: Call) -> Client:
    """Return the client that the path names, authenticated by its token. Raises `RequestRefused` with the same error for every reason."""
    named = parse_qs(call.query.decode("latin-1")).get("client_id", [])
    client_id = named[0] if len(named) == 1 and len(named[0]) <= _LONGEST_ID and "\x00" not in named[0] else ""
    try:
        return managed_client(tenant_id=call.host.tenant_id, client_id=client_id, token=_token(call))
    except NotFound as error:
        raise _unproven(RegistrationCase.INVALID_TOKEN) from error


def _token(call: Call) -> str:
    header = call.headers.get("authorization", "")
    token = header[len(_BEARER) :].strip() if header[: len(_BEARER)].lower() == _BEARER else ""
    return token if len(token) <= _LONGEST_TOKEN else ""


def _members(call: Call) -> dict[str, Any]:
    # RFC 7591, 3.1: the body is JSON. A form has no lists and no booleans.
    if call.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise _refused("Send the metadata as JSON, with the content type application/json.")
    try:
        members = parse_body("application/json", call.body)
    except MalformedBody as error:
        raise _refused(str(error)) from error
    if storable(call.body.decode("utf-8", "replace")) != call.body.decode("utf-8", "replace") or b"\\u0000" in call.body:
        raise _refused("A value contains a NUL character.")
    return members


def _take_of_place(call: Call) -> None:
    for key in customer_keys(call.address, settings.TRUSTED_PROXIES):
        _count(REGISTRATIONS_OF_PLACE.times(key.factor), call.host.tenant_id, key.name)


def _count(bucket: Bucket, *owner: str) -> None:
    if not bucket.takes(*owner):
        raise RequestRefused(RegistrationCase.TOO_MANY, rate=Rate.of_empty(bucket))


def _in_words(work: Callable[[], Done]) -> Done:
    """Do the work. If a service function refuses it, raise the refusal as `invalid_client_metadata` (RFC 7591, 3.2.2)."""
    try:
        return work()
    except (Invalid, AlreadyExists, Conflict, NotSupported) as error:
        raise _refused(str(error)) from error


def _refused(reason: str) -> RequestRefused:
    return RequestRefused(RegistrationCase.INVALID_METADATA, reason=reason)


def _unproven(case: Case) -> RequestRefused:
    # RFC 6750, 3: this endpoint is a protected resource, so its refusals have a `WWW-Authenticate` header. Most refusals of the token
    # endpoint have none.
    return RequestRefused(case, headers={"WWW-Authenticate": f'Bearer error="{case.failure.error}"'})


def _note(call: Call, client: Client, *, act: str, status: int, initial_token: str = "") -> None:
    note_registration(
        client,
        act=act,
        ip=call.address,
        user_agent=call.headers.get("user-agent", ""),
        request={"method": call.method.lower(), "path": PATH},
        status=status,
        initial_token=initial_token,
    )


client_registration = hot_endpoint(_registration, name="registration", methods=("POST", "GET", "PUT", "DELETE"))
