"""A client sends headers that only an edge (the TLS proxy that forwards client certificates) or another proxy may send.

The client spells them with underscores, repeats them, or uses other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import RequestFactory

from authapi.edge import mtls
from authapi.login.browser import address_of
from authapi.models import ClientCredential, SignIn
from authapi.services.client_credentials import NewCredential
from authapi.services.edge_keys import renew_edge_key
from authapi.views import HOT_ENDPOINTS
from identity.hosts import forget_hosts
from identity.models import CustomDomain, Tenant
from tests.authapi.asgi_client import FORM, send
from tests.authapi.browser import Browser
from tests.authapi.certificates import SUBJECT_LINES, certificate, edge_key, forwarded
from tests.authapi.client_auth.test_mutual_tls import client_with
from tests.authapi.token_forms import form_of
from tests.factories.authapi import Registered
from tests.factories.models.identity import CustomDomainFactory
from tests.factories.sign_in import people, person, web_client

SPOOFED = "203.0.113.99"
PEER = "192.0.2.1"


@pytest.fixture
def registered(tenant: Tenant) -> Registered:
    """A client that authenticates with the subject of its certificate."""
    return client_with(tenant, "tls_client_auth", NewCredential(type=ClientCredential.Type.CERT_SUBJECT_DN, subject_dn=SUBJECT_LINES))


def status(tenant: Tenant, registered: Registered, *lines: tuple[str, str], host: str | None = None) -> int:
    """Request a token with these header lines and no other authentication. Return the status of the answer."""
    body = urlencode(form_of(tenant, registered, client_secret=None)).encode()
    where = host or f"{tenant.pk}.example.test"
    return send(HOT_ENDPOINTS["/oauth/token"], "POST", host=where, headers={"Content-Type": FORM}, chunks=(body,), repeated=lines).status


def lines_of(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    return list(headers.items())


def test_a_certificate_in_headers_with_underscores_is_ignored(tenant: Tenant, registered: Registered) -> None:
    good = forwarded(edge_key(tenant), certificate())
    assert status(tenant, registered, *lines_of(good)) == 200
    written = [(name.replace("-", "_"), value) for name, value in good.items()]
    assert status(tenant, registered, *written) == 401
    for name in mtls.HEADERS:
        mixed = [(own.replace("-", "_") if own == name else own, value) for own, value in good.items()]
        assert status(tenant, registered, *mixed) == 401, name


@pytest.mark.parametrize("name", mtls.HEADERS)
@pytest.mark.parametrize("other", ["same", "other", ""])
def test_a_repeated_header_of_an_edge_is_ignored_in_either_order(tenant: Tenant, registered: Registered, name: str, other: str) -> None:
    good = forwarded(edge_key(tenant), certificate())
    second = (name, good[name] if other == "same" else other)
    assert status(tenant, registered, *lines_of(good), second) == 401
    assert status(tenant, registered, second, *lines_of(good)) == 401
    # A line whose name is spelled with underscores is ignored, so it does not repeat the header.
    assert status(tenant, registered, (name.replace("-", "_"), other), *lines_of(good)) == 200


def test_the_edge_key_of_one_domain_is_not_valid_for_another_domain_of_the_tenant(tenant: Tenant, registered: Registered) -> None:
    name = f"login.{tenant.pk}.example.test"
    second = CustomDomainFactory.create(tenant_id=tenant.pk, host=name, verified_at=CustomDomain.objects.of(tenant.pk).get().verified_at)
    forget_hosts()
    first_key, second_key = edge_key(tenant), renew_edge_key(tenant_id=tenant.pk, domain_id=second.pk)
    assert status(tenant, registered, *lines_of(forwarded(first_key, certificate()))) == 200
    assert status(tenant, registered, *lines_of(forwarded(second_key, certificate()))) == 401
    assert status(tenant, registered, *lines_of(forwarded(first_key, certificate())), host=name) == 401
    assert status(tenant, registered, *lines_of(forwarded(first_key, certificate())), host=f"mtls.{name}") == 401


FORGED_ADDRESSES = [
    {"X_Forwarded_For": SPOOFED},
    {"X-Forwarded_For": SPOOFED},
    {"Forwarded": f"for={SPOOFED}"},
    {"X-Real-IP": SPOOFED},
    {"True-Client-IP": SPOOFED},
    {"X-Client-IP": SPOOFED},
    {"CF-Connecting-IP": SPOOFED},
    {"X-Original-Forwarded-For": SPOOFED},
    {"X-Forwarded-Host": "evil.test"},
    {"X-Forwarded-Port": "1"},
    {"X-Forwarded-Server": "evil.test"},
    {"Remote-Addr": SPOOFED},
    {"auth0-forwarded-for": SPOOFED},
]


@pytest.mark.parametrize("trusted", [[], [f"{PEER}/32"]], ids=["no proxy", "behind a proxy"])
@pytest.mark.parametrize("headers", FORGED_ADDRESSES, ids=lambda headers: next(iter(headers)))
def test_an_address_header_with_another_name_is_ignored(tenant: Tenant, settings: Any, headers: dict[str, str], trusted: list[str]) -> None:
    settings.TRUSTED_PROXIES = trusted
    assert_login_is_noted_from(tenant, PEER, headers)


def test_a_forwarding_header_of_an_untrusted_peer_is_ignored(tenant: Tenant, settings: Any) -> None:
    settings.TRUSTED_PROXIES = ["10.0.0.0/8", "::1/128"]
    assert_login_is_noted_from(tenant, PEER, {"X-Forwarded-For": SPOOFED})


def test_an_address_that_the_client_sent_through_a_proxy_is_ignored(tenant: Tenant, settings: Any) -> None:
    settings.TRUSTED_PROXIES = [f"{PEER}/32"]
    assert_login_is_noted_from(tenant, "198.51.100.7", {"X-Forwarded-For": f"{SPOOFED}, 198.51.100.7"})


def assert_login_is_noted_from(tenant: Tenant, address: str, headers: dict[str, str]) -> None:
    """Fail a login with these headers, and check the IP address in the sign-in log. Then request discovery and a page with the headers."""
    client, secret = web_client(tenant, grant_types=["password"])
    person(people(tenant, client))
    form = {
        "grant_type": "password",
        "client_id": client.client_id,
        "client_secret": secret,
        "username": "ada@example.test",
        "password": "wrong",
    }
    body, host = urlencode({**form, "realm": "people"}).encode(), f"{tenant.pk}.example.test"
    answer = send(
        HOT_ENDPOINTS["/oauth/token"], "POST", host=host, headers={"Content-Type": FORM}, chunks=(body,), repeated=tuple(headers.items())
    )
    assert answer.status >= 400
    noted = [str(one.ip) for one in SignIn.objects.of(tenant.pk) if one.ip]
    assert noted == [address] * len(noted)
    assert "evil.test" not in str(answer.headers) + answer.body.decode()
    discovery = send(HOT_ENDPOINTS["/.well-known/openid-configuration"], "GET", host=host, repeated=tuple(headers.items()))
    assert discovery.json()["issuer"].endswith(f"//{host}/")
    page = Browser(tenant, address=PEER).send("GET", "/u/logged-out", headers=dict(headers))
    assert "evil.test" not in page.text


def test_pages_and_fast_endpoints_find_the_same_ip_address_of_the_client(settings: Any) -> None:
    settings.TRUSTED_PROXIES = [f"{PEER}/32"]
    request = RequestFactory().get("/", REMOTE_ADDR=PEER, HTTP_X_FORWARDED_FOR=f"{SPOOFED},198.51.100.7")
    assert address_of(request) == "198.51.100.7"
