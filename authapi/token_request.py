"""One parsed request to an OAuth endpoint."""

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
    """The host, the client, the headers and the parameters of a request.

    `repr` omits `headers` and `form`, because they contain secrets.
    """

    host: HostMatch
    address: str
    headers: Mapping[str, str] = field(repr=False)
    form: Mapping[str, Any] = field(repr=False)
    # The function that counts the request for the rate limit of the tenant, after the client is authenticated. If this is None,
    # `authapi.views.chain` counts the request later.
    charge: Charge | None = None
    # The thumbprint of the key that the sender has proven to hold (RFC 9449); empty without a proof.
    key: str = ""

    def text(self, name: str) -> str | None:
        """Return a parameter; None if it is absent. Raises `RequestRefused` for a value that is not a string.

        Such a value must not count as absent: otherwise a client that sends its scopes as a list would get all scopes.
        """
        value = self.form.get(name)
        if value is None or isinstance(value, str):
            return value
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The parameter {name} must be a string.")

    def required(self, name: str) -> str:
        """Return a parameter. Raises `RequestRefused`, which names the parameter, if it is missing."""
        value = self.text(name)
        if value is None:
            raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter=name)
        return value
