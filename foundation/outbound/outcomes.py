"""What an outbound request may reach and how it ends: the rules, the answer, and one exception per way to get none. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from foundation.outbound.addresses import Network

MAX_BODY_BYTES = 1024 * 1024


class OutboundError(Exception):
    """The request got no usable answer."""

    # Whether the server may have received the request and acted on it.
    may_have_arrived: ClassVar[bool] = False

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class UrlRefused(OutboundError):
    """The address of the destination cannot be used."""


class AddressRefused(OutboundError):
    """The host has an address that outbound requests may not reach."""


class HostUnresolved(OutboundError):
    """The host name could not be resolved."""


class ConnectFailed(OutboundError):
    """No connection to the host could be made."""


class TlsFailed(OutboundError):
    """The TLS connection was refused: the certificate or the protocol of the host is not acceptable."""


class ConnectionLost(OutboundError):
    """The connection ended before the whole answer was read."""

    may_have_arrived = True


class DeadlinePassed(OutboundError):
    """The whole answer did not arrive in time."""

    may_have_arrived = True


class AnswerTooLarge(OutboundError):
    """The answer is larger than an answer may be."""

    may_have_arrived = True


class AnswerUnreadable(OutboundError):
    """The answer is no HTTP, or its encoding is broken."""

    may_have_arrived = True


@dataclass(frozen=True)
class OutboundRules:
    """What outbound requests may reach, as the settings say."""

    private_networks: tuple[Network, ...] = ()
    allow_http: bool = False
    ca_file: str = ""


@dataclass(frozen=True)
class Greeting:
    """What a connection shows before any request: the address reached, and with TLS its version and the certificate's end."""

    address: str
    tls_version: str = ""
    certificate_until: str = ""


@dataclass(frozen=True)
class Answer:
    """A whole answer: its body is decoded and at most `MAX_BODY_BYTES` long."""

    status: int
    headers: Mapping[str, str]
    body: bytes
