"""The address of a Redis protocol server behind Sentinel: several sentinels, the name of the master, credentials and TLS.

`redis+sentinel://user:password@host:26379,host:26379/name/0?option=value`; `rediss+sentinel://` uses TLS to the sentinels and servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

SCHEMES = frozenset({"redis+sentinel", "rediss+sentinel"})
SENTINEL_PORT = 26379

_FORM = "redis+sentinel://user:password@host:26379,host:26379/<name of the master>/<database>"
_TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname")
_SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")
_FALSE = frozenset({"0", "false", "no", "off"})


class InvalidSentinelAddress(ValueError):
    """The address is not of the expected form. The text never shows the address, because it can contain a password."""


@dataclass(frozen=True)
class SentinelAddress:
    """The sentinels, the name of the master in their configuration, and the parameters of redis-py for connections."""

    master: str
    sentinels: tuple[tuple[str, int], ...]
    to_sentinels: Mapping[str, Any]
    to_servers: Mapping[str, Any]
    is_encrypted: bool


def is_sentinel_url(url: str) -> bool:
    return urlsplit(url).scheme in SCHEMES


def sentinel_address(url: str) -> SentinelAddress:
    """Parse the URL. Raises `InvalidSentinelAddress` for a missing part and for an unknown option."""
    parts = urlsplit(url)
    account, _, places = parts.netloc.rpartition("@")
    master, _, database = parts.path.strip("/").partition("/")
    if not places or not master:
        raise InvalidSentinelAddress(f"The address of Redis names no sentinel or no master: {_FORM}.")
    if database and not database.isdecimal():
        raise InvalidSentinelAddress(f"The database after the name of the master is not a number: {_FORM}.")
    is_encrypted = parts.scheme == "rediss+sentinel"
    options = _options(parts.query, is_encrypted=is_encrypted)
    tls = {name: options[name] for name in _TLS_OPTIONS if name in options}
    user, _, password = account.partition(":")
    return SentinelAddress(
        master=unquote(master),
        sentinels=tuple(_place(place) for place in places.split(",")),
        to_sentinels=_present(username=options.get("sentinel_username"), password=options.get("sentinel_password")) | tls,
        to_servers=_present(username=unquote(user), password=unquote(password), db=int(database or 0)) | tls,
        is_encrypted=is_encrypted,
    )


def _options(query: str, *, is_encrypted: bool) -> dict[str, Any]:
    options: dict[str, Any] = dict(parse_qsl(query))
    unknown = sorted(options.keys() - {*_TLS_OPTIONS, *_SENTINEL_OPTIONS})
    if unknown:
        raise InvalidSentinelAddress(f"Unknown options in the address of Redis: {', '.join(unknown)}.")
    if not is_encrypted and options.keys() & {*_TLS_OPTIONS}:
        raise InvalidSentinelAddress("The address of Redis has options of TLS: begin it with rediss+sentinel://.")
    if "ssl_check_hostname" in options:
        options["ssl_check_hostname"] = str(options["ssl_check_hostname"]).lower() not in _FALSE
    return options


def _place(place: str) -> tuple[str, int]:
    found = urlsplit(f"//{place}")
    try:
        port = found.port or SENTINEL_PORT
    except ValueError as error:
        raise InvalidSentinelAddress(f"The address of Redis has an invalid port: {_FORM}.") from error
    if not found.hostname:
        raise InvalidSentinelAddress(f"The address of Redis has a sentinel without a host: {_FORM}.")
    return found.hostname, port


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}
