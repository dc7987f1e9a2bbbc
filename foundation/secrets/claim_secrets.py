"""Recognizes claims that are secrets. Pure.

The audit log hides more names, such as `private_email` and `employee_code`: they are ordinary claims of a user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SECRET = re.compile(
    r"passw|passphrase|secret(?!ar)|token$|api_?key|access_?key|private_?key|authorization$|cookie|recovery_?code|^otp$|^nonce$|^pin$",
    re.IGNORECASE,
)
# RFC 7515, 7.1: the header of a compact token is a JSON object, so it begins with `{"` in base64url.
_TOKEN = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.")


def is_secret_name(name: str) -> bool:
    """Tell whether a claim of this name is a secret."""
    return _SECRET.search(name) is not None


def is_secret_claim(name: str | None, value: Any, *, is_read: bool = False) -> bool:
    """Tell whether a claim is a secret: its name, the name of a member or a token in a text.

    If the connection reads the claim (`is_read`), its own name does not matter: a login stores the value in the profile.
    """
    if name is not None and not is_read and is_secret_name(name):
        return True
    if isinstance(value, Mapping):
        return any(is_secret_claim(inner, member) for inner, member in value.items())
    if isinstance(value, list | tuple):
        return any(is_secret_claim(None, member) for member in value)
    return isinstance(value, str) and has_token(value)


def has_token(text: str) -> bool:
    """Tell whether a text is a token in compact form."""
    return _TOKEN.match(text) is not None
