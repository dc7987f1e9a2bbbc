"""The rules and results of outbound requests: a response, or one exception per kind of failure. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from foundation.outbound.addresses import Network

MAX_BODY_BYTES = 1024 * 1024


class OutboundError(Exception):
    """The request got no usable response."""

    # Whether the server may have received the request and acted on it.
    may_have_arrived: ClassVar[bool] = False

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class UrlRefused(OutboundError):
    """The address of the destination cannot be used."""


class AddressRefused(OutboundError):
    """The host has an IP address that outbound requests may not reach."""


class HostUnresolved(OutboundError):
    """The host name could not be resolved."""


class ConnectFailed(OutboundError):
    """No connection to the host could be made."""


class TlsFailed(OutboundError):
    """The TLS connection failed: the host's certificate or protocol is not acceptable."""


class ConnectionLost(OutboundError):
    """The connection ended before the whole response was read."""

    may_have_arrived = True


class DeadlinePassed(OutboundError):
    """The whole response did not arrive in time."""

    may_have_arrived = True


class AnswerTooLarge(OutboundError):
    """The response exceeds the maximum size."""

    may_have_arrived = True


class AnswerUnreadable(OutboundError):
    """The response is not valid HTTP, or its encoding is broken."""

    may_have_arrived = True


@dataclass(frozen=True)
class OutboundRules:
    """The IP addresses that outbound requests may reach, from the settings."""

    private_networks: tuple[Network, ...] = ()
    allow_http: bool = False
    ca_file: str = ""


@dataclass(frozen=True)
class Greeting:
    """A connection before any request: its IP address, and with TLS also the TLS version and the expiry of the certificate."""

    address: str
    tls_version: str = ""
    certificate_until: str = ""


@dataclass(frozen=True)
class Answer:
    """A whole response: its body is decoded and at most `MAX_BODY_BYTES` long."""

    status: int
    headers: Mapping[str, str]
    body: bytes
