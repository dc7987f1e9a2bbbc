"""Logins by a code of a passwordless connection at old endpoints: the one place that knows how codes are checked."""

from __future__ import annotations

from collections.abc import Mapping

from authapi.accounts.attempts import LoginRefused, Refusal
from authapi.accounts.passwordless.addresses import AddressOdd, Channel, read_address
from authapi.accounts.passwordless.connections import named_passwordless
from authapi.accounts.passwordless.limits import Place
from authapi.accounts.passwordless.login import METHODS, CodeAttempt, log_in_with_code
from authapi.failures import Case, RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.login.flow import ProvenUser
from authapi.models import Client
from authapi.protocols.legacy.requests import LegacyRequest
from identity.models import Connection, User
from identity.models.connections import PASSWORDLESS_STRATEGIES

CREDENTIAL_TYPE = "http://auth0.com/oauth/grant-type/passwordless/otp"
_CASES = {
    Refusal.USER_BLOCKED: LegacyCase.USER_BLOCKED,
    Refusal.TOO_MANY_ATTEMPTS: LegacyCase.ACCOUNT_BLOCKED,
    Refusal.SUSPICIOUS_ADDRESS: LegacyCase.SUSPICIOUS_ADDRESS,
}
_WRONG = {Channel.EMAIL: LegacyCase.WRONG_CREDENTIALS, Channel.SMS: LegacyCase.WRONG_CREDENTIALS}
_WRONG_IN_FORM = {Channel.EMAIL: LegacyCase.WRONG_EMAIL_CODE_OF_FORM, Channel.SMS: LegacyCase.WRONG_PHONE_CODE_OF_FORM}


def takes_codes(connection: Connection) -> bool:
    """Tell whether people log in with codes here."""
    return connection.strategy in PASSWORDLESS_STRATEGIES


def user_of_code(
    request: LegacyRequest, client: Client, connection: Connection, username: str, code: str, *, wrong: Mapping[Channel, Case] = _WRONG
) -> User:
    """Return the user whose code this is. Raises `RequestRefused`, for a wrong code with the row that `wrong` has for the channel."""
    channel = Channel(connection.strategy)
    try:
        address = read_address(channel, username)
        place = Place(ip=request.address, is_trusted=not client.is_public)
        attempt = CodeAttempt(request.host, client, connection, address, code, place, request.user_agent)
        return log_in_with_code(attempt)
    except AddressOdd as error:
        raise RequestRefused(wrong[channel]) from error
    except LoginRefused as refused:
        raise RequestRefused(_CASES.get(refused.reason, wrong[channel]), rate=refused.rate) from refused


def methods_of(connection: Connection) -> tuple[str, ...]:
    """Return how a person has proven who they are with a code of the connection."""
    return METHODS[Channel(connection.strategy)]


def proven_by_code(request: LegacyRequest, client: Client, username: str, code: str) -> ProvenUser:
    """Return the user of a code that a login form sends. Raises `RequestRefused`."""
    connection = named_passwordless(client, request.needed("realm"))
    if connection is None:
        raise RequestRefused(LegacyCase.UNKNOWN_REALM)
    user = user_of_code(request, client, connection, username, code, wrong=_WRONG_IN_FORM)
    return ProvenUser(user, connection, methods_of(connection))
