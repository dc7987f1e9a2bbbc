"""The service discovers the endpoints that a provider publishes, and stores them as options of the connection."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import LazySettings

from foundation.outbound.turns import turn
from identity.models import Connection, Tenant
from tests.factories.provider import Provider
from tests.factories.provider import provider as running_provider
from tests.factories.scim import reply
from tests.management import Management

ENDPOINTS = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "userinfo_endpoint": "/userinfo", "jwks_uri": "/jwks"}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        yield running


def make(api: Management, name: str = "corp", strategy: str = "oidc", **options: Any) -> Any:
    answer = api.post("connections", {"name": name, "strategy": strategy, "options": {"client_id": "abc", **options}})
    assert answer.status == 201, answer.json
    return answer.json


@pytest.mark.parametrize("strategy", ["oidc", "okta"])
def test_the_response_has_the_discovered_endpoints(api: Management, provider: Provider, strategy: str) -> None:
    made = make(api, strategy=strategy, issuer=provider.issuer, userinfo_endpoint=None)
    assert {name: made["options"][name] for name in ENDPOINTS} == {name: provider.issuer + path for name, path in ENDPOINTS.items()}
    assert made["options"]["oidc_metadata"]["issuer"] == provider.issuer
    assert api.get(f"connections/{made['id']}").json == made
    assert api.get("connections").json[0]["options"] == made["options"]


def test_a_request_that_waits_for_a_provider_does_not_block_other_requests(api: Management, tenant: Tenant, provider: Provider) -> None:
    with turn(tenant.pk):
        assert "oidc_metadata" not in make(api, issuer=provider.issuer)["options"]
    assert provider.paths == []
    assert "oidc_metadata" in make(api, "second", issuer=provider.issuer)["options"]


def test_the_url_of_the_discovery_document_is_sufficient(api: Management, provider: Provider) -> None:
    made = make(api, discovery_url=f"{provider.issuer}/.well-known/openid-configuration")
    assert made["options"]["token_endpoint"] == f"{provider.issuer}/token"


def test_an_endpoint_in_the_options_is_not_replaced_by_a_discovered_endpoint(api: Management, provider: Provider) -> None:
    made = make(api, issuer=provider.issuer, token_endpoint="https://elsewhere.example.test/token")
    assert made["options"]["token_endpoint"] == "https://elsewhere.example.test/token"
    assert made["options"]["jwks_uri"] == f"{provider.issuer}/jwks"


def test_sending_the_returned_options_back_changes_nothing(api: Management, tenant: Tenant, provider: Provider) -> None:
    made = make(api, issuer=provider.issuer, client_secret="a-secret")
    path = f"connections/{made['id']}"
    stored = Connection.objects.of(tenant.pk).get(pk=made["id"]).options
    assert "token_endpoint" not in stored
    assert api.patch(path, {"options": made["options"]}).json["options"] == made["options"]
    assert api.patch(path, {"options": {"client_id": "abc", "issuer": provider.issuer}}).json["options"] == made["options"]
    row = Connection.objects.of(tenant.pk).get(pk=made["id"])
    assert row.options == stored
    assert row.secret_option("client_secret") == "a-secret"


def test_new_endpoints_of_a_provider_are_adopted(api: Management, provider: Provider) -> None:
    made = make(api, issuer=provider.issuer, client_secret="a-secret")
    provider.discovery["token_endpoint"] = f"{provider.issuer}/new-token"
    changed = api.patch(f"connections/{made['id']}", {"options": made["options"]})
    assert (changed.status, changed.json["options"]["token_endpoint"]) == (200, f"{provider.issuer}/new-token")


def test_changing_an_endpoint_requires_the_secret_again(api: Management, provider: Provider) -> None:
    made = make(api, issuer=provider.issuer, client_secret="a-secret")
    path = f"connections/{made['id']}"
    for elsewhere in ({"token_endpoint": "https://evil.example.test/token"}, {"issuer": "https://evil.example.test"}):
        answer = api.patch(path, {"options": {**made["options"], **elsewhere}})
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert api.get(path).json == made


@pytest.mark.parametrize(
    "answer",
    [
        reply(404, {}),
        reply(200, ["no object"]),
        reply(200, {"issuer": "https://another.example.test", "token_endpoint": "https://another.example.test/token"}),
        reply(200, {"token_endpoint": "https://another.example.test/token"}),
        b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n",
        b"no http",
    ],
    ids=["missing", "list", "another issuer", "no issuer", "redirect", "no http"],
)
def test_a_connection_is_saved_unchanged_when_nothing_can_be_discovered(api: Management, provider: Provider, answer: bytes) -> None:
    provider.answers["/.well-known/openid-configuration"] = answer
    made = make(api, issuer=provider.issuer)
    assert made["options"] == {"client_id": "abc", "issuer": provider.issuer}
    assert len(provider.paths) == 1


def test_no_request_is_sent_to_private_addresses(
    api: Management, provider: Provider, settings: LazySettings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.OUTBOUND_PRIVATE_NETWORKS = []
    caplog.set_level(logging.INFO)
    made = make(api, discovery_url=f"{provider.issuer}/.well-known/openid-configuration?key=hidden")
    assert "oidc_metadata" not in made["options"]
    assert provider.paths == []
    assert "hidden" not in caplog.text


def test_only_known_members_of_the_discovery_document_with_the_right_type_are_stored(api: Management, provider: Provider) -> None:
    provider.discovery.update(
        {
            "secret_of_the_house": "x",
            "scopes_supported": ["openid", 5],
            "claims_supported": ["sub"],
            "request_parameter_supported": "yes",
            "userinfo_endpoint": "javascript:alert(1)",
            "jwks_uri": "https://user:password@evil.example.test/jwks",
            "end_session_endpoint": {"$ref": "x"},
        }
    )
    kept = make(api, issuer=provider.issuer)["options"]["oidc_metadata"]
    assert set(kept) == {"issuer", "authorization_endpoint", "token_endpoint", "claims_supported"}


def test_options_that_are_refused_cause_no_request_to_the_provider(api: Management, provider: Provider) -> None:
    answer = api.post("connections", {"name": "corp", "strategy": "oidc", "options": {"issuer": provider.issuer}})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert api.patch("connections/con_0123456789abcdef", {"options": {"client_id": "a", "issuer": provider.issuer}}).status == 404
    assert provider.paths == []


def test_options_for_another_provider_replace_the_discovered_options(api: Management, provider: Provider) -> None:
    made = make(api, issuer=provider.issuer)
    with running_provider() as second:
        changed = api.patch(f"connections/{made['id']}", {"options": {"client_id": "abc", "issuer": second.issuer}}).json
        assert changed["options"]["token_endpoint"] == f"{second.issuer}/token"
    gone = {"client_id": "abc", "issuer": "http://127.0.0.1:9"}
    assert api.patch(f"connections/{made['id']}", {"options": gone}).json["options"] == gone
