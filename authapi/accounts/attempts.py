"""One try to log in with a password, and the ways in which it is refused. Pure but for its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from authapi.edge.throttling import Rate
from authapi.models import Client
from identity.models import Connection


@dataclass(frozen=True)
class Attempt:
    """Who says to be whom, from where. `identifier` is what was typed: e-mail address, username or phone number."""

    tenant_id: str
    connection: Connection
    identifier: str
    password: str = field(repr=False)
    ip: str = ""
    user_agent: str = ""
    client: Client | None = None
    # Where the page was asked for, `http://localhost:8000`; links in mails lead there on loopback, where no domain names a port.
    address: str = ""


class Refusal(Enum):
    WRONG_CREDENTIALS = auto()
    # By an administrator; said only to somebody who knows the password.
    USER_BLOCKED = auto()
    TOO_MANY_ATTEMPTS = auto()
    PASSWORD_LEAKED = auto()
    TOO_MANY_LOGINS = auto()
    SUSPICIOUS_ADDRESS = auto()


class LoginRefused(Exception):
    """The login was refused; `reason` says why, and nothing about whether there is such a user.

    `rate` is that of the bucket that refused it, None where no bucket did.
    """

    def __init__(self, reason: Refusal, rate: Rate | None = None) -> None:
        super().__init__(reason.name)
        self.reason = reason
        self.rate = rate
