"""Logins that begin outside the client (Core 1.0, 4). The provider redirects to the registered URI and names itself as issuer."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from authapi.services.clients import update_client
from tests.authapi.memory import forget_all
from tests.conformance.openid.provider import Provider
from tests.conformance.openid.relying_party import RelyingParty, new_party

BEGIN = "https://rp.example.test/begin"


@pytest.fixture
def rp(provider: Provider) -> RelyingParty:
    return new_party(provider)


def link_of(rp: RelyingParty, login_uri: str) -> str:
    """Register the URI at which the client starts logins. Return the link of an error page, which leads to the client."""
    changes = {"settings": {"initiate_login_uri": login_uri}}
    update_client(tenant_id=rp.provider.tenant.pk, client_id=rp.client.client_id, changes=changes)
    forget_all()
    page = rp.authorize(redirect_uri="https://rp.example.test/elsewhere")
    found = re.search(r'<a class="button[^"]*" href="([^"]*)"', page.body.decode())
    assert found is not None, page.text
    return html.unescape(found.group(1))


def test_oidcc_3rd_party_init_login(rp: RelyingParty) -> None:
    link = link_of(rp, f"{BEGIN}?tenant=7")
    assert link.startswith(f"{BEGIN}?")
    assert parse_qs(urlsplit(link).query) == {"tenant": ["7"], "iss": [rp.provider.issuer]}
    # The link opens a page of the client, which then starts a login.
    assert rp.logged_in().claims["sub"]


def test_oidcc_3rd_party_init_login_nohttps(rp: RelyingParty) -> None:
    assert not link_of(rp, BEGIN.replace("https:", "http:")).startswith("http:")
