"""Discovery: it names what answers, on the host that was asked, and nothing else."""

from __future__ import annotations

import pytest

from authapi.views import HOT_ENDPOINTS
from identity.models import Tenant
from tests.authapi.asgi_client import get, send

DOCUMENTS = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")


@pytest.mark.parametrize("path", DOCUMENTS)
def test_both_documents_say_the_same(tenant: Tenant, path: str) -> None:
    issuer = f"http://{tenant.pk}.example.test/"
    assert get(tenant, path).json() == {
        "issuer": issuer,
        "token_endpoint": f"{issuer}oauth/token",
        "jwks_uri": f"{issuer}.well-known/jwks.json",
        "grant_types_supported": ["client_credentials"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "response_types_supported": [],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_address_in_it_answers(tenant: Tenant, path: str) -> None:
    document = get(tenant, path).json()
    addresses = [value for name, value in document.items() if name.endswith(("_endpoint", "_uri"))]
    assert {address.replace(document["issuer"], "/") for address in addresses} <= HOT_ENDPOINTS.keys()


def test_the_issuer_is_the_registered_host_in_lower_case(tenant: Tenant) -> None:
    assert get(tenant, DOCUMENTS[0], host=f"{tenant.pk.upper()}.EXAMPLE.test.").json()["issuer"] == f"http://{tenant.pk}.example.test/"


@pytest.mark.parametrize("host", ["", "elsewhere.example.test", "a b", "x" * 300, "t.example.test:99999999", "\x00", "évil.test"])
def test_a_host_nobody_registered_is_404(tenant: Tenant, host: str) -> None:
    assert get(tenant, DOCUMENTS[0], host=host or " ").status == 404


def test_a_forwarded_host_changes_nothing(tenant: Tenant) -> None:
    headers = {"X-Forwarded-Host": "attacker.example.test", "Forwarded": "host=attacker.example.test"}
    answer = send(HOT_ENDPOINTS[DOCUMENTS[0]], "GET", host=f"{tenant.pk}.example.test", headers=headers)
    assert "attacker" not in answer.body.decode()


def test_answers_may_be_kept_a_minute_and_read_by_any_script(tenant: Tenant) -> None:
    answer = get(tenant, "/.well-known/jwks.json")
    assert answer.headers["cache-control"] == "public, max-age=60"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["x-ratelimit-remaining"] == "199"


def test_head_is_get_without_a_body(tenant: Tenant) -> None:
    answer = send(HOT_ENDPOINTS[DOCUMENTS[0]], "HEAD", host=f"{tenant.pk}.example.test")
    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["content-length"]) > 100


def test_post_is_405(tenant: Tenant) -> None:
    answer = send(HOT_ENDPOINTS[DOCUMENTS[0]], "POST", host=f"{tenant.pk}.example.test")
    assert (answer.status, answer.headers["allow"]) == (405, "GET")
