"""One request to an OAuth endpoint, as the steps after reading see it.."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from identity.hosts import HostMatch


@dataclass(frozen=True)
class TokenRequest:
    """Where it arrived, from whom, and what it says. No repr: headers and form hold secrets."""

    host: HostMatch
    address: str
    headers: Mapping[str, str] = field(repr=False)
    form: Mapping[str, Any] = field(repr=False)

    def text(self, name: str) -> str | None:
        """Return a parameter when it is there and text; a parameter of another type counts as absent."""
        value = self.form.get(name)
        return value if isinstance(value, str) else None
