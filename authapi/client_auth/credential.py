"""The credential with which a request authenticates its client. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from authapi.edge.certificates import ReadCertificate


class MalformedCredential(ValueError):
    """The credential is malformed."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


@dataclass(frozen=True)
class Assertion:
    """A signed assertion as it was sent, with its unverified header and claims."""

    token: str = field(repr=False)
    header: dict[str, Any]
    claims: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Credential:
    """A client id with its proof: a secret, an assertion, or a certificate.

    `secrets` may also contain the URL-decoded form of the secret.
    """

    method: str
    client_id: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    assertion: Assertion | None = None
    certificate: ReadCertificate | None = None
