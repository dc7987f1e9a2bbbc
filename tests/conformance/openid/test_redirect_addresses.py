"""Redirect URIs are compared exactly, and the browser is never redirected to an unregistered URI."""

from __future__ import annotations

from tests.authapi.browser import Page
from tests.conformance.openid.provider import Provider
from tests.conformance.openid.relying_party import CALLBACK, RelyingParty, new_party

WITH_QUERY = f"{CALLBACK}?foo=bar"


def is_refused(page: Page) -> bool:
    """Report whether a page shows the error and does not redirect the browser."""
    return page.status == 400 and "location" not in page.headers and "Callback URL mismatch." in page.text


def test_oidcc_ensure_registered_redirect_uri(party: RelyingParty) -> None:
    assert is_refused(party.authorize(redirect_uri="https://rp.example.test/elsewhere"))


def test_oidcc_redirect_uri_query_ok(provider: Provider) -> None:
    party = new_party(provider, redirect_uris=WITH_QUERY)
    page = party.log_in(party.authorize(redirect_uri=WITH_QUERY))
    assert page.location.startswith(f"{WITH_QUERY}&")
    assert party.complete(page).claims["sub"]


def test_oidcc_redirect_uri_query_added(provider: Provider) -> None:
    assert is_refused(new_party(provider).authorize(redirect_uri=WITH_QUERY))


def test_oidcc_redirect_uri_query_mismatch(provider: Provider) -> None:
    party = new_party(provider, redirect_uris=WITH_QUERY)
    for address in (f"{CALLBACK}?foo=baz", f"{WITH_QUERY}&more=1", CALLBACK):
        assert is_refused(party.authorize(redirect_uri=address))


def test_oidcc_ensure_redirect_uri_in_authorization_request(provider: Provider) -> None:
    page = new_party(provider).authorize(redirect_uri=None)
    assert (page.status, "location" in page.headers) == (400, False)
    assert "Missing required parameter: redirect_uri" in page.text
