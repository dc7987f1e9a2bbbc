"""The values of a row that the audit log may show. For a secret, the log shows only whether it is set.

A value counts as secret if its name looks like the name of a secret, or if it consists of bytes. So a new column or key with such a
name is hidden until this module allows it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

HIDDEN = "(hidden)"
LONGEST = 20_000
_SECRET = re.compile(
    r"passw|passphrase|secret|token|hash|digest|seal|private|credential|api_?key|access_?key|authorization|cookie|nonce|otp|recovery|seed"
    r"|assertion|bearer|verifier|salt|jti|^ticket(_id)?$|invitation_url|^key$|^code$|_code$|^pin$|_pin$",
    re.IGNORECASE,
)
# Public values whose names look like names of secrets: durations, methods, times.
_HARMLESS = re.compile(
    r"token_endpoint(_auth_method|_auth_signing_alg)?|token_(lifetime(_for_web)?|dialect|type|exchange)|refresh_token|client_credentials"
    r"|password_?(policy|history|dictionary|no_personal_info|complexity_options|changed_at)|last_password_reset|credential_type"
    r"|(country|language|postal|zip|status|error)_code",
    re.IGNORECASE,
)
# Parts of a URL that can be a token: the user name and password, and the query string.
_ADDRESS = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?P<user>[^/?#@\s]*@)?(?P<place>[^?#\s]*)(?P<query>\?[^#\s]*)?(?P<rest>#\S*)?", re.IGNORECASE
)
# Private members of a JSON web key (RFC 7518, 6).
_PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


def is_secret(name: str) -> bool:
    """Tell whether the value of a column or member of this name is always hidden."""
    return _HARMLESS.fullmatch(name) is None and _SECRET.search(name) is not None


def shown(name: str, value: Any) -> Any:
    """Return `value` as JSON for the audit log. For a secret, return only whether it is set."""
    return _cut(_member(name, value))


def _plain(value: Any) -> Any:
    """Return `value` as JSON with its secrets hidden."""
    if isinstance(value, str):
        return _without_tokens(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return HIDDEN
    if isinstance(value, Mapping):
        private = _PRIVATE_MEMBERS if "kty" in value else frozenset()
        return {str(name): HIDDEN if name in private else _member(str(name), inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value)


def _member(name: str, value: Any) -> Any:
    if is_secret(name):
        return value if value is None or value == "" or isinstance(value, bool) else HIDDEN
    return _plain(value)


def _without_tokens(text: str) -> str:
    """Return a URL without its credentials and its query string, and any other text unchanged."""
    found = _ADDRESS.fullmatch(text)
    if found is None or not (found["user"] or found["query"]):
        return text
    user, query = f"{HIDDEN}@" if found["user"] else "", f"?{HIDDEN}" if found["query"] else ""
    return f"{found['scheme']}{user}{found['place']}{query}{found['rest'] or ''}"


def _cut(value: Any) -> Any:
    """Omit large values; the row itself still has them."""
    length = len(value if isinstance(value, str) else repr(value))
    return value if length <= LONGEST else f"(not kept: {length} characters)"


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the old values and the new values of the columns that differ, with secrets hidden."""
    changed = [name for name in after if before.get(name) != after[name]]
    return {name: shown(name, before.get(name)) for name in changed}, {name: shown(name, after[name]) for name in changed}


def whole(image: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole row with secrets hidden."""
    return {name: shown(name, value) for name, value in image.items()}
