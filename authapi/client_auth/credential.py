"""What a request presents to authenticate its client. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from authapi.edge.certificates import ReadCertificate


class MalformedCredential(ValueError):
    """Something was presented in the place of a credential that is none."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


@dataclass(frozen=True)
class Assertion:
    """A signed assertion as it was sent, with what it says of itself; nothing of it is believed yet."""

    token: str = field(repr=False)
    header: dict[str, Any]
    claims: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Credential:
    """Client id and what proves it: the spellings in which a secret may have been sent, an assertion, or a certificate."""

    method: str
    client_id: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    assertion: Assertion | None = None
    certificate: ReadCertificate | None = None
