"""What of a row may stand in the audit log: everything but secrets, which are only said to be there.

Secret is what is named like one, and bytes of any kind: a new column or a new key is hidden by its name and has to be let
through here, never the other way round. Pure.
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
# Named like a secret, and none: how long, by which way, since when.
_HARMLESS = re.compile(
    r"token_endpoint(_auth_method|_auth_signing_alg)?|token_(lifetime(_for_web)?|dialect|type|exchange)|refresh_token|client_credentials"
    r"|password_?(policy|history|dictionary|no_personal_info|complexity_options|changed_at)|last_password_reset|credential_type"
    r"|(country|language|postal|zip|status|error)_code",
    re.IGNORECASE,
)
# What of an address may be a token: the user name and password, and the query string.
_ADDRESS = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?P<user>[^/?#@\s]*@)?(?P<place>[^?#\s]*)(?P<query>\?[^#\s]*)?(?P<rest>#\S*)?", re.IGNORECASE
)
# Members of a JSON web key that are private (RFC 7518, 6).
_PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


def is_secret(name: str) -> bool:
    """Tell whether a column or a member of this name is never shown."""
    return _HARMLESS.fullmatch(name) is None and _SECRET.search(name) is not None


def shown(name: str, value: Any) -> Any:
    """Return `value` as JSON for the audit log; of a secret only whether it is there."""
    return _cut(_member(name, value))


def _plain(value: Any) -> Any:
    """Return `value` as JSON, secrets within it hidden."""
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
    """Return an address without its credentials and its query string, and any other text as it is."""
    found = _ADDRESS.fullmatch(text)
    if found is None or not (found["user"] or found["query"]):
        return text
    user, query = f"{HIDDEN}@" if found["user"] else "", f"?{HIDDEN}" if found["query"] else ""
    return f"{found['scheme']}{user}{found['place']}{query}{found['rest'] or ''}"


def _cut(value: Any) -> Any:
    """Leave out what would make an entry as large as the row: nobody reads it, and the row is where it was."""
    length = len(value if isinstance(value, str) else repr(value))
    return value if length <= LONGEST else f"(not kept: {length} characters)"


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns whose values differ, as they were and as they are, fit to be shown."""
    changed = [name for name in after if before.get(name) != after[name]]
    return {name: shown(name, before.get(name)) for name in changed}, {name: shown(name, after[name]) for name in changed}


def whole(image: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole row as it may be shown."""
    return {name: shown(name, value) for name, value in image.items()}
