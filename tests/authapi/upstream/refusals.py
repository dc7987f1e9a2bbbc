"""Functions for tests of hostile providers: encoded parts of tokens, answers of token endpoints, and checks of refusals."""

from __future__ import annotations

import base64
import json
from typing import Any

from authapi.models import Session
from identity.models import User
from tests.factories.provider import Login
from tests.factories.scim import reply


def encoded(value: bytes | dict[str, Any]) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def tokens(token: Any, **more: Any) -> bytes:
    return reply(200, {"access_token": "at", "token_type": "Bearer", "expires_in": 60, "id_token": token, **more})


def assert_refused(login: Login, response: Any) -> None:
    told = login.told(response)
    assert "code" not in told
    assert told["error"] in ("access_denied", "server_error", "temporarily_unavailable")
    assert not Session.objects.of(login.tenant.pk).exists()
    assert not User.objects.of(login.tenant.pk).exists()
