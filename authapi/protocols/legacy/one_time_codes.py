"""Logins by a code of a passwordless connection at old endpoints: the one place that knows how codes are checked."""

from __future__ import annotations

from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.login.flow import ProvenUser
from authapi.models import Client
from authapi.protocols.legacy.requests import LegacyRequest
from identity.models import Connection, User
from identity.models.connections import PASSWORDLESS_STRATEGIES

CREDENTIAL_TYPE = "http://auth0.com/oauth/grant-type/passwordless/otp"


def takes_codes(connection: Connection) -> bool:
    """Tell whether people log in with codes here."""
    return connection.strategy in PASSWORDLESS_STRATEGIES


def user_of_code(request: LegacyRequest, client: Client, connection: Connection, username: str, code: str) -> User:
    """Refuse: codes are not issued by this release. Raises `RequestRefused`."""
    raise RequestRefused(LegacyCase.WRONG_STRATEGY)


def proven_by_code(request: LegacyRequest, client: Client, username: str, code: str) -> ProvenUser:
    """Refuse likewise, for a login form that sends a code. Raises `RequestRefused`."""
    raise RequestRefused(LegacyCase.WRONG_CREDENTIAL_TYPE, credential_type=CREDENTIAL_TYPE)
