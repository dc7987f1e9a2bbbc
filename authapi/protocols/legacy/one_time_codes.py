"""Logins by a code of a passwordless connection at old endpoints: the one place that knows how codes are checked."""

from __future__ import annotations

from authapi.accounts.attempts import LoginRefused, Refusal
from authapi.accounts.passwordless.addresses import AddressOdd, channel_of, read_address
from authapi.accounts.passwordless.connections import named_passwordless
from authapi.accounts.passwordless.limits import Place
from authapi.accounts.passwordless.login import METHODS, CodeAttempt, log_in_with_code
from authapi.failures import RequestRefused
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


def takes_codes(connection: Connection) -> bool:
    """Tell whether people log in with codes here."""
    return connection.strategy in PASSWORDLESS_STRATEGIES


def user_of_code(request: LegacyRequest, client: Client, connection: Connection, username: str, code: str) -> User:
    """Return the user whose code this is. Raises `RequestRefused`."""
    try:
        address = read_address(channel_of(connection), username)
        place = Place(ip=request.address, is_trusted=not client.is_public)
        return log_in_with_code(
            CodeAttempt(
                host=request.host,
                client=client,
                connection=connection,
                address=address,
                code=code,
                place=place,
                user_agent=request.user_agent,
            )
        )
    except AddressOdd as error:
        raise RequestRefused(LegacyCase.WRONG_CREDENTIALS) from error
    except LoginRefused as refused:
        raise RequestRefused(_CASES.get(refused.reason, LegacyCase.WRONG_CREDENTIALS), rate=refused.rate) from refused


def proven_by_code(request: LegacyRequest, client: Client, username: str, code: str) -> ProvenUser:
    """Return the user of a code that a login form sends. Raises `RequestRefused`."""
    connection = named_passwordless(client, request.needed("realm"))
    if connection is None:
        raise RequestRefused(LegacyCase.UNKNOWN_REALM)
    user = user_of_code(request, client, connection, username, code)
    return ProvenUser(user, connection, METHODS[channel_of(connection)])
