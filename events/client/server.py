"""Parses the URL of a service that an operator types: the URL of the stream, its base, or only the host. Pure."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

_VISIBLE = re.compile(r"[\x21-\x7e]+")
_PORTS = {"http": 80, "https": 443}
_BASE_PATH = "/api/v2"
_EVENTS_PATH = "/events"


class InvalidAddress(ValueError):
    """The text is not a valid URL of a service; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Server:
    """A service: its public host name, which its certificate contains, and the IP address or host to which the client connects.

    With `connect_to`, the client connects to the server at this address, without DNS and without a proxy, but still sends the public host
    name.
    """

    scheme: str
    host: str
    port: int
    base_path: str = _BASE_PATH
    connect_to: tuple[str, int] | None = None
    ca_file: str | None = None

    @property
    def authority(self) -> str:
        """Return host and port as in a `Host` header or a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def base_url(self) -> str:
        return f"{self.origin}{self.base_path}"

    @property
    def audience(self) -> str:
        """Return the audience of tokens for the management interface, which includes the stream."""
        return f"{self.base_url}/"

    @property
    def events_path(self) -> str:
        return f"{self.base_path}{_EVENTS_PATH}"

    @property
    def events_url(self) -> str:
        return f"{self.origin}{self.events_path}"

    @property
    def address(self) -> tuple[str, int]:
        """Return the host and port to connect to."""
        return self.connect_to or (self.host, self.port)

    @property
    def is_plain(self) -> bool:
        """Tell whether a connection would send secrets over a network without TLS."""
        return self.scheme == "http" and not _is_loopback(self.address[0])


def read_server(url: str, *, connect_to: str | None = None, ca_file: str | None = None) -> Server:
    """Parse `https://host`, `https://host/api/v2` or `https://host/api/v2/events`. Raises `InvalidAddress`."""
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        port = parts.port
    except ValueError as error:
        raise InvalidAddress(f"{url!r} is not an address: {error}.") from error
    if parts.scheme not in _PORTS or not parts.hostname:
        raise InvalidAddress(f"{url!r} is not an http or https address.")
    if parts.username is not None or parts.query or parts.fragment:
        raise InvalidAddress("The address must not contain credentials, a query or a fragment; use the options for them.")
    if not _VISIBLE.fullmatch(parts.hostname + parts.path):
        raise InvalidAddress("The address contains characters that are not allowed in a URL.")
    path = parts.path.rstrip("/").removesuffix(_EVENTS_PATH) or _BASE_PATH
    server = Server(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], path, ca_file=ca_file)
    return replace(server, connect_to=_place(connect_to, server.port)) if connect_to else server


def _place(text: str, port: int) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        if not parts.hostname or parts.path:
            raise InvalidAddress(f"{text!r} is not a host and port.")
        return parts.hostname, parts.port or port
    except ValueError as error:
        raise InvalidAddress(f"{text!r} is not a host and port.") from error


def _is_loopback(host: str) -> bool:
    # RFC 6761, 6.3: names below localhost never leave the machine.
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
