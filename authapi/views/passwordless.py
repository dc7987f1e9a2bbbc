"""`POST /passwordless/start`, `/passwordless/verify`, `/passwordless/challenge` and `/otp/challenge`: codes for applications with their
own forms (contract 2.5).

The answers do not tell whether an account exists: `_id` is derived from the email address or phone number, and `email_verified` is always
false.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson

from authapi import client_auth
from authapi.accounts.attempts import LoginRefused, Refusal
from authapi.accounts.passwordless.addresses import Address, AddressOdd, Channel, channel_of, read_address
from authapi.accounts.passwordless.codes import bound_to_session
from authapi.accounts.passwordless.connections import named_passwordless, tenant_passwordless
from authapi.accounts.passwordless.limits import Place, TooManyCodes
from authapi.accounts.passwordless.login import CodeAttempt, check_code
from authapi.accounts.passwordless.messages import CannotSend
from authapi.accounts.passwordless.numbers import countries_of
from authapi.accounts.passwordless.starting import LinkAnswer, Wanted, start
from authapi.edge.bodies import MalformedBody, parse_body
from authapi.edge.languages import request_language
from authapi.failures import Case, RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.passwordless import PasswordlessCase
from authapi.failures.requests import RequestCase
from authapi.grants.password import person_behind
from authapi.grants.passwordless import PasswordlessGrant, refusal_of
from authapi.login.protocol import ProtocolRequest, protocol_named
from authapi.models import Client
from authapi.protocols.oauth.entry import NAME as OAUTH_NAME
from authapi.protocols.oauth.parameters import read
from authapi.token_request import TokenRequest
from authapi.views.chain import Answer, Application, Call, hot_endpoint, json_answer
from foundation.secrets import vault
from foundation.secrets.random_secrets import new_secret
from foundation.tenancy import tenant_bound
from identity.models import Connection

_JSON = {"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store", "Pragma": "no-cache"}
_FIELDS = {Channel.EMAIL: "email", Channel.SMS: "phone_number"}
# Members of `authParams` that are ignored. The client and the connection come from the request itself. The remaining members of this list
# would make the link continue another login.
_OWN_PARAMETERS = frozenset({"client_id", "connection", "realm", "login_ticket", "access_token", "request", "request_uri"})
_UNVERIFIED = {Channel.EMAIL: PasswordlessCase.UNVERIFIED_EMAIL, Channel.SMS: PasswordlessCase.UNVERIFIED_PHONE}


def _start(call: Call) -> Answer:
    request = _request(call, malformed=PasswordlessCase.BAD_REQUEST)
    client = _starting_client(request)
    connection, channel = _connection(request, client)
    address = _address(request, connection, channel)
    send = request.text("send") or "link"
    if send not in ("link", "code"):
        raise RequestRefused(PasswordlessCase.BAD_REQUEST, reason="The parameter `send` must be `link` or `code`.")
    # A text message always contains a code, even if the client requests a link.
    link = _link_answer(request, client, connection) if send == "link" and channel is Channel.EMAIL else None
    _sent(call, _wanted(request, client, connection, address, link=link))
    shown = vault.digest(f"passwordless:{connection.pk}:{address.value}").partition(".")[2][:24]
    return json_answer({"_id": shown, address.field: address.value, address.proof_field: False}, headers=_JSON)


def _challenge(call: Call) -> Answer:
    request = _request(call, malformed=RequestCase.MALFORMED_REQUEST)
    client = client_auth.authenticate(request)
    if not client.allows_grant_type(PasswordlessGrant.name):
        raise RequestRefused(OAuthCase.GRANT_NOT_ALLOWED, grant=PasswordlessGrant.name)
    connection = named_passwordless(client, request.required("connection"))
    channel = channel_of(connection) if connection is not None else None
    if connection is None or channel is None:
        reason = "The connection is not enabled for the client, or its strategy is neither email nor sms."
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=reason)
    if request.form.get("delivery_method", "text") != "text":
        raise RequestRefused(
            RequestCase.MALFORMED_REQUEST, reason="The parameter `delivery_method` must be `text`: `voice` is not supported."
        )
    field = _FIELDS[channel]
    try:
        address = read_address(channel, request.required(field), countries=countries_of(connection))
    except AddressOdd as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The parameter {field} is not valid.") from error
    secret = new_secret()
    wanted = _wanted(
        request, client, connection, address, bound_to=bound_to_session(secret), takes_sign_up=_is_true(request.form.get("allow_signup"))
    )
    _sent(call, wanted)
    return json_answer({"auth_session": secret}, headers=_JSON)


def _verify(call: Call) -> Answer:
    """Answer whether a code is correct.

    The code stays valid, because the browser then sends the code to `/passwordless/verify_redirect`.
    """
    request = _request(call, malformed=RequestCase.MALFORMED_REQUEST)
    client = _named_client(request)
    name = request.required("connection")
    connection = named_passwordless(client, name) if client is not None else tenant_passwordless(call.host.tenant_id, name)
    channel = channel_of(connection) if connection is not None else None
    if connection is None or channel is None:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The connection does not exist or is not enabled for the client.")
    typed = request.text(_FIELDS[channel]) or request.required("username")
    code = request.text("verification_code") or request.required("password")
    try:
        address = read_address(channel, typed)
        attempt = CodeAttempt(call.host, client, connection, address, code, Place(call.address), _agent(call))
        check_code(attempt)
    except AddressOdd as error:
        raise RequestRefused(_UNVERIFIED[channel]) from error
    except LoginRefused as refused:
        wrong = refused.reason is Refusal.WRONG_CREDENTIALS
        raise (RequestRefused(_UNVERIFIED[channel]) if wrong else refusal_of(refused, channel)) from refused
    return Answer(200, b"", _JSON)


def _bound(endpoint: Any, call: Call) -> Answer:
    with tenant_bound(call.host.tenant_id):
        answer: Answer = endpoint(call)
        return answer


def _request(call: Call, *, malformed: Case) -> TokenRequest:
    try:
        form = parse_body(call.headers.get("content-type", ""), call.body)
    except MalformedBody as error:
        raise RequestRefused(malformed, reason=str(error)) from error
    return TokenRequest(call.host, call.address, call.headers, form, call.charge)


def _starting_client(request: TokenRequest) -> Client:
    """Return the client of the request, authenticated if it is confidential.

    The error may tell that the client id is unknown, because client ids are public.
    """
    try:
        return client_auth.authenticate(request)
    except RequestRefused as refused:
        is_missing = refused.case is OAuthCase.MISSING_CLIENT_AUTHENTICATION
        if is_missing or (refused.case is OAuthCase.WRONG_CLIENT_AUTHENTICATION and _named_client(request) is None):
            raise RequestRefused(PasswordlessCase.BAD_CLIENT) from refused
        raise


def _named_client(request: TokenRequest) -> Client | None:
    named = request.text("client_id")
    return Client.objects.of(request.host.tenant_id).filter(client_id=named, revoked_at=None).first() if named else None


def _connection(request: TokenRequest, client: Client) -> tuple[Connection, Channel]:
    name = _text(request, "connection", PasswordlessCase.BAD_CONNECTION)
    connection = named_passwordless(client, name)
    channel = channel_of(connection) if connection is not None else None
    if connection is None or channel is None:
        reason = "The connection does not exist, is not enabled for the client, or its strategy is neither email nor sms."
        raise RequestRefused(PasswordlessCase.BAD_CONNECTION, reason=reason)
    return connection, channel


def _address(request: TokenRequest, connection: Connection, channel: Channel) -> Address:
    typed = _text(request, _FIELDS[channel], PasswordlessCase.BAD_REQUEST)
    try:
        return read_address(channel, typed, countries=countries_of(connection))
    except AddressOdd as error:
        if channel is Channel.SMS:
            raise RequestRefused(PasswordlessCase.BAD_PHONE_NUMBER) from error
        raise RequestRefused(PasswordlessCase.BAD_REQUEST, reason="The parameter `email` is not an email address.") from error


def _link_answer(request: TokenRequest, client: Client, connection: Connection) -> LinkAnswer:
    """Return the authorization request that the link in the mail continues. The request is checked before the link is mailed."""
    given = request.form.get("authParams", {})
    if isinstance(given, str):
        try:
            given = orjson.loads(given)
        except orjson.JSONDecodeError as error:
            raise _bad_parameters("authParams must be an object.") from error
    usual = connection.options.get("authParams")
    texts = _texts({**(usual if isinstance(usual, dict) else {}), **_object(given)})
    texts.setdefault("response_type", "token" if client.is_public and client.allows_grant_type("implicit") else "code")
    fixed = {"client_id": client.client_id, "connection": connection.name}
    try:
        state = dict(read([*texts.items(), *fixed.items()]).values)
        refusal = protocol_named(OAUTH_NAME).wish_of(ProtocolRequest(request.host, client, state)).refusal
    except RequestRefused as refused:
        refusal = refused
    if refusal is not None:
        raise _bad_parameters(refusal.failure.description) from refusal
    return LinkAnswer(OAUTH_NAME, state)


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _bad_parameters("authParams must be an object.")
    return value


def _texts(parameters: Mapping[str, Any]) -> dict[str, str]:
    named = {name: value for name, value in parameters.items() if name not in _OWN_PARAMETERS and value is not None}
    odd = next((name for name, value in named.items() if not isinstance(value, str)), None)
    if odd is not None:
        raise _bad_parameters(f"The member {odd[:64]} of authParams must be a string.")
    return named


def _bad_parameters(reason: str) -> RequestRefused:
    return RequestRefused(PasswordlessCase.BAD_PARAMETERS, reason=reason)


def _wanted(request: TokenRequest, client: Client, connection: Connection, address: Address, **more: Any) -> Wanted:
    sender = person_behind(request, client)
    place = Place(sender.ip, is_trusted=not client.is_public)
    language = request_language(request.headers, request.host.tenant_id)
    return Wanted(request.host, client, connection, address, place, sender.user_agent, language, **more)


def _sent(call: Call, wanted: Wanted) -> None:
    try:
        start(wanted)
    except TooManyCodes as refused:
        raise RequestRefused(PasswordlessCase.TOO_MANY_CODES, rate=refused.rate) from refused
    except CannotSend as error:
        is_text = wanted.address.channel is Channel.SMS
        raise RequestRefused(PasswordlessCase.CANNOT_SEND_TEXT if is_text else PasswordlessCase.CANNOT_SEND_MAIL) from error


def _text(request: TokenRequest, name: str, case: PasswordlessCase) -> str:
    value = request.form.get(name)
    if not isinstance(value, str):
        raise RequestRefused(case, reason=f"Missing or invalid parameter: {name}")
    return value


def _is_true(value: Any) -> bool:
    return value is True or value == "true"


def _agent(call: Call) -> str:
    return call.headers.get("user-agent", "")


_TENANT_WORDS: dict[Case, Case] = {
    RequestCase.UNKNOWN_HOST: PasswordlessCase.BAD_TENANT,
    RequestCase.TENANT_SUSPENDED: PasswordlessCase.BAD_TENANT,
}
passwordless_start: Application = hot_endpoint(
    partial(_bound, _start), name="passwordless_start", methods=("POST",), in_words_of=_TENANT_WORDS
)
passwordless_verify: Application = hot_endpoint(partial(_bound, _verify), name="passwordless_verify", methods=("POST",))
otp_challenge: Application = hot_endpoint(partial(_bound, _challenge), name="otp_challenge", methods=("POST",))
