"""Signing secrets of webhooks, and the signatures made with these secrets. Pure."""

from __future__ import annotations

import base64
import binascii

from foundation.secrets.signatures import webhook_signature

SECRET_PREFIX = "whsec_"  # noqa: S105  (a prefix)
SHORTEST_KEY_BYTES = 24
LONGEST_KEY_BYTES = 64


class SecretRefused(ValueError):
    """The signing secret must be `whsec_` and the base64 of 24 to 64 random bytes."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def key_of(secret: str) -> bytes:
    """Return the key inside a secret; raise `SecretRefused`."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise SecretRefused from error
    if not secret.startswith(SECRET_PREFIX) or not SHORTEST_KEY_BYTES <= len(key) <= LONGEST_KEY_BYTES:
        raise SecretRefused
    return key


def signature(secret: str, *, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature` for a message sent at `timestamp`, seconds since 1970."""
    return webhook_signature(key_of(secret), message_id=message_id, timestamp=timestamp, body=body)
