"""Typed readers of environment variables, and the list of all settings of the service.

For an invalid value, a reader raises an error that names the variable and the expected form.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from authapi.edge.addresses import UNIX_SOCKETS

Value = TypeVar("Value")

# RFC 9110, 5.5 and 5.6.2.
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True)
class Setting:
    """One environment variable: its name, kind, default as text, effect, and allowed values."""

    name: str
    kind: str
    default: str
    effect: str
    allowed: str = ""


SETTINGS: dict[str, Setting] = {}


def text(name: str, default: str, effect: str, *, choices: tuple[str, ...] = ()) -> str:
    """Read a string: one of `choices`, if given."""
    expected = f"one of {', '.join(choices)}" if choices else ""
    _register(name, "text", default, effect, expected)
    value = os.environ.get(name, "") or default
    if choices and value not in choices:
        raise _refusal(name, value, expected)
    return value


def secret(name: str, default: str, effect: str) -> str:
    """Read a secret from the variable, or from the file named by `<name>_FILE`. `SETTINGS`, the list of all settings, omits its default."""
    _register(name, "secret", "", effect)
    return _hidden(name) or default


def integer(name: str, default: int, effect: str, *, minimum: int = 0, maximum: int | None = None) -> int:
    """Read an integer between `minimum` and `maximum`, both included."""
    bounds = f"at least {minimum}" + (f" and at most {maximum}" if maximum is not None else "")
    expected = f"a whole number of {bounds}"
    _register(name, "integer", str(default), effect, bounds)
    value = _converted(name, default, int, expected)
    if value < minimum or (maximum is not None and value > maximum):
        raise _refusal(name, str(value), expected)
    return value


def number(name: str, default: float, effect: str, *, minimum: float = 0.0, maximum: float | None = None) -> float:
    """Read a decimal number between `minimum` and `maximum`, both included."""
    bounds = f"at least {minimum:g}" + (f" and at most {maximum:g}" if maximum is not None else "")
    expected = f"a number of {bounds}"
    _register(name, "number", str(default).removesuffix(".0"), effect, bounds)
    value = _converted(name, default, float, expected)
    if not value >= minimum or value == float("inf") or (maximum is not None and value > maximum):
        raise _refusal(name, str(value), expected)
    return value


def address(name: str, default: str, effect: str) -> str:
    """Read an http or https URL without credentials; the value may be empty."""
    _register(name, "text", default, effect, "an http or https address")
    value = os.environ.get(name, "") or default
    if not value:
        return ""
    try:
        parts = urlsplit(value)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        # The value may contain a password, so the message omits it.
        raise ImproperlyConfigured(f"{name} is not usable: an http or https address without credentials is expected.")
    return value


def headers(name: str, effect: str) -> dict[str, str]:
    """Read a comma-separated list of `<name>=<value>`, or the file named by `<name>_FILE`. Never quotes a value in an error."""
    _register(name, "secret", "", effect)
    found: dict[str, str] = {}
    for position, item in enumerate(part.strip() for part in _hidden(name).split(",") if part.strip()):
        header, separator, value = (part.strip() for part in item.partition("="))
        if not separator or not _HEADER_NAME.fullmatch(header) or not _HEADER_VALUE.fullmatch(value):
            raise ImproperlyConfigured(f"{name}: entry {position + 1} is not of the form <name>=<value>.")
        found[header] = value
    return found


def flag(name: str, *, default: bool, effect: str) -> bool:
    """Read a boolean: 1/true/yes/on or 0/false/no/off."""
    _register(name, "flag", "1" if default else "0", effect)
    raw = os.environ.get(name, "")
    if not raw:
        return default
    if raw.lower() not in _TRUE | _FALSE:
        raise _refusal(name, raw, "1 or 0")
    return raw.lower() in _TRUE


def listing(name: str, default: str, effect: str) -> list[str]:
    """Read a comma-separated list; drops surrounding spaces and empty items."""
    _register(name, "list", default, effect)
    raw = os.environ.get(name, "") or default
    return [item.strip() for item in raw.split(",") if item.strip()]


def replacements(name: str, effect: str) -> dict[str, dict[str, str]]:
    """Read a comma-separated list of `<strategy>.<name>=<address>`; return these URLs by strategy and name."""
    found: dict[str, dict[str, str]] = {}
    for item in listing(name, "", effect):
        place, _, address = item.partition("=")
        strategy, _, endpoint = place.partition(".")
        if not (strategy and endpoint and address.startswith(("https://", "http://"))):
            raise _refusal(name, item, "<strategy>.<name>=<address>, such as github.token_endpoint=https://github.example/token,")
        found.setdefault(strategy, {})[endpoint] = address
    return found


def networks(name: str, default: str, effect: str) -> list[str]:
    """Read a comma-separated list of IP addresses and networks. `unix:` means every unix socket."""
    found = listing(name, default, effect)
    for item in found:
        try:
            _ = item == UNIX_SOCKETS or ip_network(item, strict=False)
        except ValueError as error:
            raise _refusal(name, item, f"an address, a network or {UNIX_SOCKETS}") from error
    return found


def servers(name: str, default_port: int, effect: str) -> list[tuple[str, int]]:
    """Read a comma-separated list of IP addresses, with or without ports: `192.0.2.53`, `192.0.2.53:5353`, `[::1]:5353`."""
    found = []
    for item in listing(name, "", effect):
        address, _, port = item.rpartition(":") if item.count(":") == 1 or "]:" in item else (item, "", str(default_port))
        try:
            parsed = str(ip_address(address[1:-1] if address.startswith("[") and address.endswith("]") else address))
            number_of_port = int(port)
        except ValueError as error:
            raise _refusal(name, item, "an address, optionally with a port,") from error
        if not 0 < number_of_port < 65536:
            raise _refusal(name, item, "a port from 1 to 65535")
        found.append((parsed, number_of_port))
    return found


def numbers(name: str, default: str, effect: str) -> list[float]:
    """Read a comma-separated list of non-negative numbers."""
    values: list[float] = []
    for item in listing(name, default, effect):
        try:
            value = float(item)
        except ValueError as error:
            raise _refusal(name, item, "a number") from error
        if not 0 <= value < float("inf"):
            raise _refusal(name, item, "a non-negative number")
        values.append(value)
    return values


def keys(name: str, default: str, effect: str) -> dict[str, str]:
    """Read a key list `id:value,id:value`, newest first. An id has 1 to 8 letters or digits; a value has at least 32 characters.

    The list may be in the file named by `<name>_FILE`. Returns the keys by id in the given order. Raises `ImproperlyConfigured`, without
    quoting a value.
    """
    _register(name, "keys", "", effect)
    raw = _hidden(name) or default
    found: dict[str, str] = {}
    for position, item in enumerate(part.strip() for part in raw.split(",") if part.strip()):
        key_id, separator, value = item.partition(":")
        if not separator or not key_id.isalnum() or len(key_id) > 8 or len(value) < 32:
            raise ImproperlyConfigured(
                f"{name}: entry {position + 1} is not of the form <id>:<at least 32 characters>, id 1 to 8 letters or digits."
            )
        if key_id in found:
            raise ImproperlyConfigured(f"{name}: the key id {key_id} appears twice.")
        found[key_id] = value
    return found


def _register(name: str, kind: str, default: str, effect: str, allowed: str = "") -> None:
    # The settings modules are read first. If another module reads the same variable later, the entry of the settings modules must stay.
    SETTINGS.setdefault(name, Setting(name, kind, default, effect, allowed))


def _hidden(name: str) -> str:
    """Return the variable, or the content of the file named by `<name>_FILE` without surrounding blanks and line ends.

    Raises `ImproperlyConfigured` if `<name>` and `<name>_FILE` are both set, or if the file cannot be read or is empty.
    """
    raw, path = os.environ.get(name, ""), os.environ.get(f"{name}_FILE", "")
    if not path:
        return raw
    if raw:
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set: set one of them.")
    try:
        content = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        # Name only the type of the error: the text of a decoding error contains bytes of the file, and the file has a secret.
        raise ImproperlyConfigured(f"{name}_FILE={path!r} cannot be read: {type(error).__name__}.") from None
    if not content:
        raise ImproperlyConfigured(f"{name}_FILE={path!r} is empty.")
    return content


def _converted(name: str, default: Value, convert: Callable[[str], Value], expected: str) -> Value:
    raw = os.environ.get(name, "")
    if not raw:
        return default
    try:
        return convert(raw)
    except ValueError as error:
        raise _refusal(name, raw, expected) from error


def _refusal(name: str, value: str, expected: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{name}={value!r} is not usable: {expected} is expected.")
