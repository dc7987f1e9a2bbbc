"""`http://auth0.com/oauth/grant-type/passwordless/otp`: the client sends the code that the user received (contract 2.3, 2.5)."""

from __future__ import annotations

from authapi.accounts.attempts import LoginRefused, Refusal
from authapi.accounts.passwordless.addresses import Address, AddressOdd, Channel, channel_of, read_address
from authapi.accounts.passwordless.codes import bound_to_session, session_code
from authapi.accounts.passwordless.connections import named_passwordless
from authapi.accounts.passwordless.limits import Place
from authapi.accounts.passwordless.login import METHODS, CodeAttempt, log_in_with_code
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.passwordless import PasswordlessCase
from authapi.failures.requests import RequestCase
from authapi.grants.password import check_entitlement, check_organization, issued, person_behind
from authapi.grants.user_grant import Granted, UserGrant
from authapi.login.connections import client_connections
from authapi.models import Client
from authapi.token_request import TokenRequest
from authapi.tokens.refresh_tokens import Sender
from identity.models import Connection

_GRANT_CLAIM = "passwordless"
_WRONG = {Channel.EMAIL: PasswordlessCase.WRONG_EMAIL_CODE, Channel.SMS: PasswordlessCase.WRONG_PHONE_CODE}
_CASES = {
    Refusal.USER_BLOCKED: LoginCase.USER_BLOCKED,
    Refusal.TOO_MANY_ATTEMPTS: PasswordlessCase.TOO_MANY_GUESSES,
    Refusal.SUSPICIOUS_ADDRESS: LoginCase.SUSPICIOUS_ADDRESS,
}


class PasswordlessGrant(UserGrant):
    """Logs a user in with a code. The request names the email address, the phone number or the `auth_session` of a challenge."""

    name = "http://auth0.com/oauth/grant-type/passwordless/otp"

    def granted(self, request: TokenRequest, client: Client) -> Granted:
        code = request.required("otp")
        sender = person_behind(request, client)
        attempt = self._attempt(request, client, code, sender)
        check_organization(request, client)
        check_entitlement(request, client)
        try:
            user = log_in_with_code(attempt)
        except LoginRefused as refused:
            raise refusal_of(refused, attempt.address.channel) from refused
        methods = METHODS[attempt.address.channel]
        return issued(request, client, attempt.connection, user, sender, methods=methods, grant=_GRANT_CLAIM)

    def _attempt(self, request: TokenRequest, client: Client, code: str, sender: Sender) -> CodeAttempt:
        session = request.text("auth_session")
        if session is None:
            connection, address = _named(request, client)
            bound_to = ""
        else:
            connection, address = _of_session(request, client, session)
            bound_to = bound_to_session(session)
        place = Place(sender.ip, is_trusted=not client.is_public)
        return CodeAttempt(request.host, client, connection, address, code, place, sender.user_agent, bound_to)


def refusal_of(refused: LoginRefused, channel: Channel) -> RequestRefused:
    """Return the answer of the token endpoint to a refused code."""
    return RequestRefused(_CASES.get(refused.reason, _WRONG[channel]), rate=refused.rate)


def _named(request: TokenRequest, client: Client) -> tuple[Connection, Address]:
    username, realm = request.required("username"), request.required("realm")
    connection = named_passwordless(client, realm)
    channel = channel_of(connection) if connection is not None else None
    if connection is None or channel is None:
        raise RequestRefused(LoginCase.UNKNOWN_REALM)
    try:
        return connection, read_address(channel, username)
    except AddressOdd as error:
        raise RequestRefused(_WRONG[channel]) from error


def _of_session(request: TokenRequest, client: Client, session: str) -> tuple[Connection, Address]:
    """Return the connection of a challenge of this client, and the email address or phone number to which the code was sent.

    The address comes from the row, so that no request can replace the address.
    """
    row = session_code(client, session)
    channel = channel_of(row.connection) if row is not None else None
    if row is None or channel is None:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The auth_session is unknown or has expired.")
    realm = request.text("realm")
    if realm is not None and realm not in (row.connection.name, row.connection.strategy, *row.connection.realms):
        raise RequestRefused(LoginCase.UNKNOWN_REALM)
    if all(one.pk != row.connection_id for one in client_connections(client)):
        raise RequestRefused(LoginCase.UNKNOWN_REALM)
    return row.connection, Address(channel, row.address)
