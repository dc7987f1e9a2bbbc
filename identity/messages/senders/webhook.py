"""Text messages through a gateway of the tenant: a signed POST of `{"recipient", "body", "sender"}`."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from joserfc import jwt
from joserfc.jwk import OctKey

from foundation.secrets.signatures import webhook_signature
from identity.messages.outcomes import InDoubt, MessageRefused, ProviderAway
from identity.messages.senders.posting import post
from identity.messages.senders.protocol import TextMessage

_TOKEN_SECONDS = 60
# Statuses that permit a retry. Any other status from 300 to 499 is a final refusal.
_LATER = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_SUCCESS, _REDIRECT, _CLIENT_ERROR, _SERVER_ERROR = 200, 300, 400, 500


@dataclass(frozen=True)
class Bearer:
    """Authenticates the service to a gateway: a token that is valid for one minute, signed with a shared secret."""

    secret: bytes = field(repr=False)
    subject: str = ""
    audience: str = ""

    def token(self, now: int) -> str:
        claims: dict[str, Any] = {"iat": now, "exp": now + _TOKEN_SECONDS}
        claims |= {name: value for name, value in (("sub", self.subject), ("aud", self.audience)) if value}
        return jwt.encode({"alg": "HS256", "typ": "JWT"}, claims, OctKey.import_key(self.secret))


@dataclass(frozen=True)
class WebhookSender:
    """Signs each message like every webhook of this service: `webhook-id`, `webhook-timestamp` and `webhook-signature`."""

    url: str
    key: bytes = field(default=b"", repr=False)
    bearer: Bearer | None = None
    sender: str = ""

    def send(self, message: TextMessage) -> None:
        written = {"recipient": message.to, "body": message.body, "sender": message.sender or self.sender}
        post_signed(self.url, self.key, message_id=message.id, written=written, bearer=self.bearer)


def post_signed(url: str, key: bytes, *, message_id: str, written: Mapping[str, Any], bearer: Bearer | None = None) -> None:
    """Post an object to a server of the tenant. Without a key the request is not signed.

    Raises `ProviderAway` if the server has certainly not accepted the object, `InDoubt` if the server may have accepted it, and
    `MessageRefused` for a final refusal.
    """
    now, body = int(time.time()), json.dumps(written, ensure_ascii=False).encode()
    headers = {"Content-Type": "application/json", "webhook-id": message_id, "webhook-timestamp": str(now)}
    if key:
        headers["webhook-signature"] = webhook_signature(key, message_id=message_id, timestamp=now, body=body)
    if bearer is not None:
        headers["Authorization"] = f"Bearer {bearer.token(now)}"
    answer = post(url, headers=headers, body=body)
    if _SUCCESS <= answer.status < _REDIRECT:
        return
    if answer.status in _LATER:
        raise ProviderAway(f"The gateway answers {answer.status}.")
    if answer.status >= _SERVER_ERROR:
        # The gateway failed while it processed the message, which may have been sent.
        raise InDoubt(f"The gateway answers {answer.status}.")
    raise MessageRefused(f"The gateway refuses the message (status {answer.status}).")


def key_bytes(secret: str, *, is_base64: bool) -> bytes:
    """Return the bytes of a shared secret. Invalid base64 is used as text, even if `is_base64`."""
    if not is_base64:
        return secret.encode()
    try:
        return base64.b64decode(secret, validate=True)
    except ValueError:
        return secret.encode()
