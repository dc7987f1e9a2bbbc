"""A login or logout never redirects the browser to a URL that only resembles a registered URL.

The registered URL is `https://app.example.test/callback`. The other URLs in this module are attacks. Other implementations compared,
parsed or joined these URLs wrongly.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser

from authapi.models import Client
from identity.models import Tenant
from tests.factories.sign_in import CALLBACK, people, web_client

ELSEWHERE = [
    # URLs with other hosts or schemes, in the spellings that browsers accept.
    "https://evil.example",
    "http://app.example.test/callback",
    "//evil.example",
    "///evil.example",
    "////evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/%09/evil.example",
    "/%5cevil.example",
    "https:evil.example",
    "https:/evil.example",
    "https:///evil.example",
    "https:\\\\evil.example",
    "HTTPS://EVIL.EXAMPLE",
    " https://evil.example",
    "\thttps://evil.example",
    "https://evil.example\n",
    "https://evil.example/callback",
    "ftp://app.example.test/callback",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)//https://app.example.test/callback",
    "java\nscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:msgbox(1)",
    "blob:https://app.example.test/callback",
    # The registered host as part of another URL.
    "https://app.example.test.evil.example/callback",
    "https://app.example.testevil.example/callback",
    "https://evilapp.example.test/callback",
    "https://evil.example/https://app.example.test/callback",
    "https://evil.example?https://app.example.test/callback",
    "https://evil.example#https://app.example.test/callback",
    "https://app.example.test@evil.example/callback",
    "https://app.example.test:pw@evil.example/callback",
    "https://app.example.test%40evil.example/callback",
    "https://evil.example\\@app.example.test/callback",
    "https://evil.example\\.app.example.test/callback",
    "https://evil.example%2f.app.example.test/callback",
    "https://evil.example%00.app.example.test/callback",
    "https://evil.example%0d%0aLocation:%20https://evil.example/",
    "https://app.example.test\r\nLocation: https://evil.example/",
    "https://app.example.test\u3002evil.example/callback",
    "https://app.example.test\u2044.evil.example/callback",
    "https://app\u200b.example.test/callback",
    "https://xn--app-example.test/callback",
    # The registered URL with additions or omissions.
    "https://user@app.example.test/callback",
    "https://app.example.test:8443/callback",
    "https://app.example.test:443/callback",
    "https://app.example.test./callback",
    "https://APP.example.test/callback",
    "https://app.example.test//callback",
    "https://app.example.test/callback/",
    "https://app.example.test/callback/..",
    "https://app.example.test/callback/../open?to=evil.example",
    "https://app.example.test/callback/%2e%2e/open",
    "https://app.example.test/callback%2f..%2fopen",
    "https://app.example.test/Callback",
    "https://app.example.test/%63allback",
    "https://app.example.test/callback?",
    "https://app.example.test/callback?next=https://evil.example",
    "https://app.example.test/callback;next=evil",
    "https://app.example.test/callback#next",
    "https://app.example.test/callback#",
    "https://app.example.test/callback%20",
    "https://app.example.test/callback\x00",
    "https://sub.app.example.test/callback",
    "https://example.test/callback",
    "https://*.example.test/callback",
    "callback",
    "/callback",
]


@pytest.fixture
def client(tenant: Tenant) -> Client:
    registered, _ = web_client(tenant, post_logout_redirect_uris=CALLBACK)
    people(tenant, registered)
    return registered


@pytest.fixture
def browser(tenant: Tenant, settings: Any) -> Browser:
    # The test sends more requests than the rate limit of a tenant allows.
    settings.RATE_LIMITS_ENABLED = False
    return Browser(headers={"host": f"{tenant.pk}.example.test"})


def test_a_login_never_redirects_to_a_url_that_does_not_equal_a_registered_url(client: Client, browser: Browser) -> None:
    asked = {"response_type": "code", "client_id": client.client_id, "scope": "openid"}
    # Also send a prompt that fails immediately, and an invalid parameter: vulnerable servers redirect the browser with these errors before
    # they check the URL.
    for more in ({}, {"prompt": "none"}, {"response_type": "nonsense"}, {"prompt": "none login"}):
        for address in ELSEWHERE:
            answer = browser.get("/authorize", {**asked, "redirect_uri": address, **more})
            assert answer.status_code == 400, (address, more)
            assert "Location" not in answer, (address, more)


def test_a_login_redirects_to_the_registered_url(client: Client, browser: Browser) -> None:
    asked = {"response_type": "code", "client_id": client.client_id, "scope": "openid", "redirect_uri": CALLBACK, "prompt": "none"}
    answer = browser.get("/authorize", asked)
    assert answer.status_code == 302
    assert answer["Location"].startswith(f"{CALLBACK}?error=login_required")


# A logout ignores the query and the fragment (contract, 2.8) and the case of the host, so a logout accepts these URLs.
SAME_AT_LOGOUT = {
    "https://APP.example.test/callback",
    "https://app.example.test/callback?",
    "https://app.example.test/callback?next=https://evil.example",
    "https://app.example.test/callback#next",
    "https://app.example.test/callback#",
}


@pytest.mark.parametrize(("path", "name"), [("/v2/logout", "returnTo"), ("/oidc/logout", "post_logout_redirect_uri")])
def test_a_logout_never_redirects_to_a_url_that_is_not_registered(client: Client, browser: Browser, path: str, name: str) -> None:
    for address in ELSEWHERE:
        if address in SAME_AT_LOGOUT:
            continue
        answer = browser.get(path, {"client_id": client.client_id, name: address})
        assert "Location" not in answer or answer["Location"].startswith("/"), (address, answer.get("Location"))
        assert answer.status_code in (200, 302, 400), address


def test_a_logout_redirects_to_the_registered_url(client: Client, browser: Browser) -> None:
    answer = browser.get("/v2/logout", {"client_id": client.client_id, "returnTo": CALLBACK})
    assert (answer.status_code, answer["Location"]) == (302, CALLBACK)
