"""Scripts get tokens only on pages that the client allows. Requests from outside a browser are not restricted."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.clients.origins import is_origin_allowed
from authapi.models import RefreshToken
from identity.models import Tenant
from tests.authapi.asgi_client import ask_token
from tests.factories.logins import CALLBACK, code_form, code_of, login_of, public_client, some_user

ALLOWED = ["https://app.example.com", "https://*.preview.example.com"]
CALLBACKS = ["https://shop.example.com/back?x=1"]


@pytest.mark.parametrize(
    ("origin", "is_good"),
    [
        (None, True),
        ("https://app.example.com", True),
        ("https://pr-7.preview.example.com", True),
        ("https://shop.example.com", True),
        ("https://app.example.com:444", False),
        ("http://app.example.com", False),
        ("https://app.example.com.evil.test", False),
        ("https://a.b.preview.example.com", False),
        ("https://preview.example.com", False),
        ("https://*.preview.example.com", False),
        ("https://app.example.com/path", False),
        ("https://u@app.example.com", False),
        ("null", False),
        ("", False),
    ],
)
def test_a_client_allows_its_listed_origins_and_those_of_its_callbacks(origin: str | None, is_good: bool) -> None:
    assert is_origin_allowed(origin, allowed=ALLOWED, known=CALLBACKS) is is_good
    assert is_origin_allowed(origin, allowed=[], known=CALLBACKS)


@pytest.mark.parametrize(
    ("origins", "sent", "status"),
    [
        ("", "https://evil.test", 200),
        ("https://app.example.com", "https://evil.test", 403),
        ("https://app.example.com", "null", 403),
        ("https://app.example.com", "https://app.example.com", 200),
        ("https://app.example.com", CALLBACK.removesuffix("/callback"), 200),
        ("https://app.example.com", None, 200),
    ],
)
def test_a_script_gets_tokens_only_on_allowed_pages(tenant: Tenant, origins: str, sent: str | None, status: int) -> None:
    registered = public_client(tenant, allowed_origins=origins)
    form: dict[str, Any] = code_form(registered, code_of(login_of(tenant, registered, some_user(tenant), scope="openid offline_access")))
    answer = ask_token(tenant, form, headers={"Origin": sent} if sent else {})
    assert answer.status == status
    assert RefreshToken.objects.of(tenant.pk).exists() is (status == 200)
    # A script of any origin can read the answer, so the script can read why its request was refused.
    assert answer.headers["access-control-allow-origin"] == "*"
    if status == 403:
        assert answer.json()["error"] == "access_denied"
        assert ask_token(tenant, form).status == 200, "the refusal has used up the code"
