"""An attempt to log in with a password, and the reasons for which it can be refused.

Pure, except that an attempt refers to database rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from authapi.edge.throttling import Rate
from authapi.models import Client
from identity.models import Connection


@dataclass(frozen=True)
class Attempt:
    """The identity that a user claims, and the source of the request. `identifier` is an email address, username or phone number."""

    tenant_id: str
    connection: Connection
    identifier: str
    password: str = field(repr=False)
    ip: str = ""
    user_agent: str = ""
    client: Client | None = None
    # Origin of the page, such as `http://localhost:8000`. On loopback, mailed links begin with this origin, because the links need the port
    # of the page: the domain of a tenant contains no port.
    address: str = ""


class Refusal(Enum):
    WRONG_CREDENTIALS = auto()
    # An administrator has blocked the user. Only a login with the correct password gets this reason.
    USER_BLOCKED = auto()
    TOO_MANY_ATTEMPTS = auto()
    PASSWORD_LEAKED = auto()
    TOO_MANY_LOGINS = auto()
    SUSPICIOUS_ADDRESS = auto()


class LoginRefused(Exception):
    """The login was refused. `reason` does not reveal whether the user exists.

    `rate` is the rate of the bucket that refused the login; None if no bucket refused it.
    """

    def __init__(self, reason: Refusal, rate: Rate | None = None) -> None:
        super().__init__(reason.name)
        self.reason = reason
        self.rate = rate
