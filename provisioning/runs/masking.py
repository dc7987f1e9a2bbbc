"""Removes secrets from texts about a request before they are stored or shown. Pure.

A server may echo the token in a header or an error, so the mask replaces secret values everywhere, in all encodings in which the service
sends them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

MASK = "***"
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "authentication-info"})


class Mask:
    """Replaces the given secret values in texts, headers and documents."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        # The longest form is replaced first, because one form may be a prefix of another.
        self._forms = sorted(forms, key=len, reverse=True)

    def __repr__(self) -> str:
        return f"<Mask of {len(self._forms)} forms>"

    def text(self, value: str) -> str:
        for form in self._forms:
            value = value.replace(form, MASK)
        return value

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers; values of credential headers are masked completely."""
        return {name: MASK if name.lower() in _SECRET_HEADERS else self.text(value) for name, value in headers.items()}

    def value(self, value: Any) -> Any:
        """Return a copy of a JSON value with all texts masked, including member names."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(name)): self.value(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value


def one_line(text: str, limit: int) -> str:
    """Return `text` without control characters, at most `limit` characters long."""
    cleaned = text if text.isprintable() else "".join(character if character.isprintable() else " " for character in text)
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…"


def _forms(secret: str) -> tuple[str, ...]:
    return secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], quote(secret, safe="")
