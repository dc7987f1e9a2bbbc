"""Logins with a code of a passwordless connection at old endpoints. No other module of this package checks codes."""

from __future__ import annotations

from authapi.accounts.attempts import LoginRefused, Refusal
from authapi.accounts.passwordless.addresses import AddressOdd, Channel, channel_of, read_address
from authapi.accounts.passwordless.connections import named_passwordless
from authapi.accounts.passwordless.limits import Place
from authapi.accounts.passwordless.login import METHODS, CodeAttempt, log_in_with_code
from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.login.connections import client_connections
from authapi.login.flow import ProvenUser
from authapi.models import Client
from authapi.protocols.legacy.requests import LegacyRequest
from identity.models import Connection

CREDENTIAL_TYPE = "http://auth0.com/oauth/grant-type/passwordless/otp"
_CASES = {
    Refusal.USER_BLOCKED: LegacyCase.USER_BLOCKED,
    Refusal.TOO_MANY_ATTEMPTS: LegacyCase.ACCOUNT_BLOCKED,
    Refusal.SUSPICIOUS_ADDRESS: LegacyCase.SUSPICIOUS_ADDRESS,
}
# Scripts of login forms recognize a wrong code by `access_denied`, as for a wrong password.
_WRONG_OF_FORM = {Channel.EMAIL: LegacyCase.WRONG_EMAIL_CODE_OF_FORM, Channel.SMS: LegacyCase.WRONG_PHONE_CODE_OF_FORM}


def connection_of_codes(client: Client, name: str) -> Connection | None:
    """Return the passwordless connection for the name that an old client sends; None if no such connection exists.

    Old clients send the strategy `email` or `sms` as the name. If a connection that uses no codes has that name, return None.
    """
    others = (one for one in client_connections(client) if channel_of(one) is None)
    return None if any(name in (one.name, *one.realms) for one in others) else named_passwordless(client, name)


def log_in(
    request: LegacyRequest, client: Client, connection: Connection, username: str, code: str, *, is_form: bool = False
) -> ProvenUser:
    """Log in the user of a code at a passwordless connection of the client. Raises `RequestRefused`.

    With `is_form`, a wrong code is refused with the error of a login form.
    """
    channel = Channel(connection.strategy)
    wrong = _WRONG_OF_FORM[channel] if is_form else LegacyCase.WRONG_CREDENTIALS
    try:
        attempt = CodeAttempt(
            host=request.host,
            client=client,
            connection=connection,
            address=read_address(channel, username),
            code=code,
            # Guesses are limited per IP address. Only an authenticated client is exempt, and old endpoints do not authenticate clients.
            place=Place(ip=request.address),
            user_agent=request.user_agent,
        )
        return ProvenUser(log_in_with_code(attempt), connection, METHODS[channel])
    except AddressOdd as error:
        raise RequestRefused(wrong) from error
    except LoginRefused as refused:
        raise RequestRefused(_CASES.get(refused.reason, wrong), rate=refused.rate) from refused
