"""One request to an OAuth endpoint, as the steps after reading see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from authapi.edge.charging import Charge
from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase
from identity.hosts import HostMatch


@dataclass(frozen=True)
class TokenRequest:
    """Where it arrived, from whom, and what it says. No repr: headers and form hold secrets."""

    host: HostMatch
    address: str
    headers: Mapping[str, str] = field(repr=False)
    form: Mapping[str, Any] = field(repr=False)
    # Told when the client is proven. Without one, the chain charges by the outcome.
    charge: Charge | None = None
    # The thumbprint of the key that the sender has proven to hold (RFC 9449), empty where no proof came.
    key: str = ""

    def text(self, name: str) -> str | None:
        """Return a parameter, None when it is absent. Raises `RequestRefused` for one that is no text.

        To take it for absent would give more than was asked for: all scopes in place of a list of one.
        """
        value = self.form.get(name)
        if value is None or isinstance(value, str):
            return value
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The parameter {name} must be a string.")

    def required(self, name: str) -> str:
        """Return a parameter; raise `RequestRefused` naming the one that is missing."""
        value = self.text(name)
        if value is None:
            raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter=name)
        return value
