"""What a request presents to authenticate its client. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field


class MalformedCredential(ValueError):
    """Something was presented in the place of a credential that is none."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


@dataclass(frozen=True)
class Credential:
    """Client id and, for secret methods, the spellings in which the secret may have been sent."""

    method: str
    client_id: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
