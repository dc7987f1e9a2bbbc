"""Recognizes claims that are secrets. Pure.

The audit log also hides values with other names, such as `private_email` and `employee_code`. In this module, claims with these names are
not secrets, because they are ordinary claims of a user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SECRET = re.compile(
    r"passw|passphrase|secret(?!ar)|token$|api_?key|access_?key|private_?key|authorization$|cookie|recovery_?code|^otp$|^nonce$|^pin$",
    re.IGNORECASE,
)
# `Bearer` and a token, as in an Authorization header (RFC 6750, 2.1). If fewer than 16 characters follow, they can be a word of a sentence.
_BEARER = re.compile(r"\bbearer +[A-Za-z0-9._~+/-]{16,}", re.IGNORECASE)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{0,30}://(?P<user>[^/?#@\s]*@)?[^?#\s]*(?P<rest>[?#]\S*)?", re.IGNORECASE)
_PARAMETER = re.compile(r"[?&;#]([^=?&;#\s]+)=")
# RFC 7515, 7.1: the header of a compact token is a JSON object, so it begins with `{"` in base64url.
_TOKEN = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.")


def is_secret_name(name: str) -> bool:
    """Tell whether a claim of this name is a secret."""
    return _SECRET.search(name) is not None


def is_secret_claim(name: str | None, value: Any, *, is_read: bool = False) -> bool:
    """Tell whether a claim is a secret: by its name, by the name of a member of its value, or by a token in a text of its value.

    If the connection reads the claim (`is_read`), the name of the claim does not matter: a login stores the value in the profile, where
    it can be read, so it would be useless to hide the claim.
    """
    if name is not None and not is_read and is_secret_name(name):
        return True
    if isinstance(value, Mapping):
        return any(is_secret_claim(inner, member) for inner, member in value.items())
    if isinstance(value, list | tuple):
        return any(is_secret_claim(None, member) for member in value)
    return isinstance(value, str) and has_token(value)


def has_token(text: str) -> bool:
    """Tell whether a text contains a token in compact form, a bearer token, or a URL with user information or a secret parameter."""
    if _TOKEN.search(text) or _BEARER.search(text):
        return True
    return any(_has_secret(found) for found in _ADDRESS.finditer(text))


def _has_secret(address: re.Match[str]) -> bool:
    return bool(address["user"]) or any(map(is_secret_name, _PARAMETER.findall(address["rest"] or "")))
