"""Decodes tokens, changes them, and signs them again."""

from __future__ import annotations

import base64
import json
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from authapi.tokens.keys import signing_key
from identity.models import Tenant


def encoded(part: Any) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decoded(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    header, payload, _ = (base64.urlsafe_b64decode(part + "==") for part in token.split("."))
    return json.loads(header), json.loads(payload)


def signed(tenant: Tenant, token: str, *, header: dict[str, Any] | None = None, claims: dict[str, Any] | None = None) -> str:
    """Change the contents of `token`, and sign the token again with the tenant's own key. A member that is None is removed."""
    kid, key = signing_key(tenant.pk)
    old_header, old_claims = decoded(token)
    new_header = {name: value for name, value in (old_header | {"kid": kid} | (header or {})).items() if value is not None}
    new_claims = {name: value for name, value in (old_claims | (claims or {})).items() if value is not None}
    text = f"{encoded(new_header)}.{encoded(new_claims)}"
    signature = key.get_op_key("sign").sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{text}.{encoded(signature)}"
