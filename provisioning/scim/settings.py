"""Parses and validates the five secrets of a SCIM action, and computes the longest duration of a run. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from provisioning.runs.failures import Misconfigured

BASE_URL = "SCIM_BASE_URL"
BEARER_TOKEN = "SCIM_BEARER_TOKEN"  # noqa: S105  (the name of the secret)
TIMEOUT_MS = "SCIM_TIMEOUT_MS"
MAX_RETRIES = "SCIM_MAX_RETRIES"
CONNECTION_ALLOWLIST = "SCIM_CONNECTION_ALLOWLIST"
REQUIRED = (BASE_URL, BEARER_TOKEN)
# These values are stored with the secrets, but not masked in stored exchanges: masking would also hide equal numbers and names that have
# another meaning there.
NOT_CONFIDENTIAL = frozenset({TIMEOUT_MS, MAX_RETRIES, CONNECTION_ALLOWLIST})

DEFAULT_TIMEOUT_MS = 1500
DEFAULT_MAX_RETRIES = 1
# No run may take longer than 20 s, so a longer timeout of a single request makes no sense.
_LONGEST_TIMEOUT_MS = 20_000
_MOST_RETRIES = 10
# The requests of the worst case: a lookup by `externalId`, a lookup by `userName`, and the write.
_REQUESTS_AT_WORST = 3
BUDGET_MS = 10_000


class SecretRefused(ValueError):
    """The value of a secret cannot be used."""


@dataclass(frozen=True)
class ScimSettings:
    """The parsed secrets. The token is excluded from `repr`."""

    base_url: str
    bearer_token: str = field(repr=False)
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    max_retries: int = DEFAULT_MAX_RETRIES
    connection_allowlist: frozenset[str] = frozenset()

    def allows(self, connection_name: str) -> bool:
        """Tell whether events of this connection are processed; an empty list allows all connections. Names are case-sensitive."""
        return not self.connection_allowlist or connection_name in self.connection_allowlist


def parse_settings(secrets: Mapping[str, str], *, allow_http: bool) -> ScimSettings:
    """Parse all five secrets. Raise `Misconfigured` with the names of missing required secrets, or with the name of the first invalid
    secret.
    """
    missing = [name for name in REQUIRED if not secrets.get(name)]
    if missing:
        raise Misconfigured(f"missing required secret: {', '.join(missing)}")
    try:
        return ScimSettings(
            base_url=parse_base_url(secrets[BASE_URL], allow_http=allow_http),
            bearer_token=parse_bearer_token(secrets[BEARER_TOKEN]),
            timeout_ms=parse_timeout_ms(secrets.get(TIMEOUT_MS, "")),
            max_retries=parse_max_retries(secrets.get(MAX_RETRIES, "")),
            connection_allowlist=parse_allowlist(secrets.get(CONNECTION_ALLOWLIST, "")),
        )
    except SecretRefused as error:
        raise Misconfigured(str(error)) from error


def check_secret(name: str, value: str, *, allow_http: bool) -> None:
    """Raise `SecretRefused` if `value` is invalid for the secret `name`. A secret with an unknown name may have any value."""
    if name == BASE_URL:
        parse_base_url(value, allow_http=allow_http)
    elif name == BEARER_TOKEN:
        parse_bearer_token(value)
    elif name == TIMEOUT_MS:
        parse_timeout_ms(value)
    elif name == MAX_RETRIES:
        parse_max_retries(value)


def parse_base_url(value: str, *, allow_http: bool) -> str:
    """Return the base URL without trailing slashes. Error texts do not repeat the value, because users sometimes paste a token into this
    field."""
    text = value.strip().rstrip("/")
    try:
        parts = urlsplit(text)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise SecretRefused(f"{BASE_URL} is not a URL: https://<host>/<path> is expected.") from error
    schemes = ("https", "http") if allow_http else ("https",)
    if parts.scheme not in schemes or not usable:
        raise SecretRefused(f"{BASE_URL} must be a URL that begins with {' or '.join(f'{name}://' for name in schemes)} and has a host.")
    if "?" in text or "#" in text or "@" in parts.netloc:
        raise SecretRefused(f"{BASE_URL} must have no query, no fragment and no user name.")
    if not re.fullmatch(r"[!-~]+", text) or "\\" in text or any(part in {".", ".."} for part in parts.path.split("/")):
        raise SecretRefused(f"{BASE_URL} must be ASCII without spaces, backslashes or dot segments.")
    return text


def origin_of(base_url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of the URL: the server that gets the token. Raise `ValueError` for an invalid URL."""
    parts = urlsplit(base_url.strip())
    return parts.scheme, parts.hostname or "", parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)


def parse_bearer_token(value: str) -> str:
    if not re.fullmatch(r"[!-~]+", value):
        raise SecretRefused(f"{BEARER_TOKEN} must be printable ASCII without spaces, exactly as the SCIM server issued it.")
    return value


def parse_timeout_ms(value: str) -> int:
    return _whole_number(TIMEOUT_MS, value, DEFAULT_TIMEOUT_MS, lowest=1, highest=_LONGEST_TIMEOUT_MS)


def parse_max_retries(value: str) -> int:
    return _whole_number(MAX_RETRIES, value, DEFAULT_MAX_RETRIES, lowest=0, highest=_MOST_RETRIES)


def parse_allowlist(value: str) -> frozenset[str]:
    """Return the names of a comma-separated list, trimmed, without empty names. An empty result allows every connection."""
    return frozenset(name.strip() for name in value.split(",") if name.strip())


def longest_pause_ms(retry: int) -> int:
    """Return the longest pause, in ms, before a repeat: 250 ms before the first, twice as long before each further one, at most 1 s."""
    return min(250 << (retry - 1), 1000)


def budget_warning(timeout_ms: int, max_retries: int, *, budget_ms: int = BUDGET_MS) -> str:
    """Return a sentence with the calculation if the worst case exceeds the budget of a run; otherwise an empty string."""
    pauses = sum(longest_pause_ms(retry) for retry in range(1, max_retries + 1))
    total = _REQUESTS_AT_WORST * ((1 + max_retries) * timeout_ms + pauses)
    if total <= budget_ms:
        return ""
    return (
        f"In the worst case a run takes {_REQUESTS_AT_WORST} x ({1 + max_retries} x {timeout_ms} ms + {pauses} ms of pauses) = {total} ms, "
        f"more than its budget of {budget_ms} ms. It is then stopped, and the delivery is attempted again."
    )


def _whole_number(name: str, value: str, default: int, *, lowest: int, highest: int) -> int:
    text = value.strip()
    if not text:
        return default
    if not re.fullmatch(r"[0-9]{1,9}", text) or not lowest <= int(text) <= highest:
        raise SecretRefused(f"{name} must be a whole number from {lowest} to {highest}.")
    return int(text)
