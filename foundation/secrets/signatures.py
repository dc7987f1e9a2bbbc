"""Signatures of webhooks as Standard Webhooks 1.0 defines them: HMAC-SHA-256 over id, time and body. Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac


def webhook_signature(key: bytes, *, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature` for a message sent at `timestamp`, seconds since 1970."""
    signed = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"
