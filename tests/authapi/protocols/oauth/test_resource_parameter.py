"""The parameter `resource` (RFC 8707) names an API if the tenant enables the parameter. `audience` has precedence over `resource`."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest

from authapi.services.api_resources import create_api_resource
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import update_client
from authapi.services.tenant_settings import update_tenant_settings
from authapi.views import HOT_ENDPOINTS
from identity.models import Tenant
from tests.authapi.asgi_client import FORM, Received, ask_token, send
from tests.authapi.browser import Browser, Page
from tests.authapi.forging import decoded
from tests.authapi.login.conftest import Login
from tests.authapi.memory import forget_all
from tests.authapi.pushing import Pusher
from tests.factories.sign_in import CALLBACK, people, person, web_client

ORDERS, STOCK = "https://orders.example.test/", "urn:example:stock"


class Shop(Login):
    """A client with two APIs, at a tenant that enables `resource`."""

    secret = ""

    def token(self, **form: Any) -> Received:
        fields = {"client_id": self.client.client_id, "client_secret": self.secret, **form}
        if not isinstance(form.get("resource"), list):
            return ask_token(self.tenant, fields)
        headers = {"Content-Type": FORM}
        body = urlencode(fields, doseq=True).encode()
        return send(HOT_ENDPOINTS["/oauth/token"], "POST", host=self.browser.host, headers=headers, chunks=(body,))

    def machine(self, **form: Any) -> Received:
        return self.token(grant_type="client_credentials", **form)

    def exchange(self, page: Page, **form: Any) -> Received:
        return self.token(grant_type="authorization_code", code=page.answer["code"], redirect_uri=CALLBACK, **form)


@pytest.fixture
def shop(tenant: Tenant) -> Shop:
    client, secret = web_client(tenant, grant_types=["authorization_code", "refresh_token", "client_credentials"])
    connection = people(tenant, client)
    for identifier in (ORDERS, STOCK):
        api = create_api_resource(tenant_id=tenant.pk, identifier=identifier, settings={"allow_offline_access": True})
        create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=api)
    profile(tenant, "compatibility")
    shop = Shop(tenant, client, connection, person(connection), Browser(tenant))
    shop.secret = secret
    return shop


def profile(tenant: Tenant, name: str) -> None:
    update_tenant_settings(tenant_id=tenant.pk, changes={"resource_parameter_profile": name})
    forget_all()


def audience(answer: Received) -> Any:
    assert answer.status == 200, answer.body
    return decoded(answer.json()["access_token"])[1]["aud"]


def target_error(answer: Received) -> None:
    assert (answer.status, answer.json()["error"]) == (400, "invalid_target"), answer.body


def test_a_resource_names_the_api_and_an_audience_has_precedence(shop: Shop) -> None:
    assert audience(shop.machine(resource=ORDERS)) == ORDERS
    assert audience(shop.machine(resource=ORDERS, audience=STOCK)) == STOCK
    assert audience(shop.machine(resource=[ORDERS, "urn:unknown"], audience=STOCK)) == STOCK
    page = shop.log_in(shop.ask(resource=ORDERS))
    assert audience(shop.exchange(page)) == [ORDERS, f"{shop.issuer}userinfo"]
    assert audience(shop.exchange(shop.ask(resource=ORDERS, audience=STOCK))) == [STOCK, f"{shop.issuer}userinfo"]


BAD = [
    [ORDERS, STOCK],
    "urn:unknown",
    "orders",
    f"{ORDERS}#part",
    "https://orders.example.test/ x",
]


@pytest.mark.parametrize("resource", BAD, ids=str)
def test_an_unknown_or_invalid_resource_is_refused_and_so_are_two_different_resources(shop: Shop, resource: Any) -> None:
    target_error(shop.machine(resource=resource))
    answer = shop.ask(resource=resource)
    assert answer.answer["error"] == "invalid_target"
    pushed = Pusher(shop.tenant, shop.client, shop.secret).push(resource=resource, as_json=True)
    target_error(pushed)


def test_a_text_with_a_nul_character_is_refused_without_a_database_error(shop: Shop) -> None:
    answer = ask_token(
        shop.tenant,
        {"grant_type": "client_credentials", "client_id": shop.client.client_id, "client_secret": shop.secret, "resource": ["a:\x00"]},
        as_json=True,
    )
    target_error(answer)


def test_a_resource_that_is_repeated_with_the_same_value_is_accepted(shop: Shop) -> None:
    assert audience(shop.machine(resource=[ORDERS, ORDERS])) == ORDERS


def test_the_code_and_the_refresh_token_are_for_the_api_of_their_login(shop: Shop) -> None:
    page = shop.log_in(shop.ask(resource=ORDERS, scope="openid offline_access"))
    target_error(shop.exchange(page, resource=STOCK))
    first = shop.exchange(page, resource=ORDERS)
    token = first.json()["refresh_token"]
    target_error(shop.token(grant_type="refresh_token", refresh_token=token, resource=STOCK))
    # If the older parameter `audience` is refused, the error is not that of a refused `resource`, but `access_denied`: existing clients
    # recognize this error.
    refused = shop.token(grant_type="refresh_token", refresh_token=token, audience=STOCK)
    assert (refused.status, refused.json()["error"]) == (403, "access_denied")
    assert audience(shop.token(grant_type="refresh_token", refresh_token=token, resource=ORDERS)) == audience(first)


def test_a_refresh_can_request_another_api_if_the_settings_of_the_client_name_it(shop: Shop) -> None:
    policies = {"rotation_type": "non-rotating", "expiration_type": "non-expiring", "policies": [{"audience": STOCK, "scope": []}]}
    update_client(tenant_id=shop.tenant.pk, client_id=shop.client.client_id, changes={"settings": {"refresh_token": policies}})
    forget_all()
    token = shop.exchange(shop.log_in(shop.ask(resource=ORDERS, scope="openid offline_access"))).json()["refresh_token"]
    assert STOCK in audience(shop.token(grant_type="refresh_token", refresh_token=token, resource=STOCK))


def test_a_tenant_that_has_not_enabled_the_parameter_ignores_it(shop: Shop) -> None:
    profile(shop.tenant, "audience")
    answer = shop.machine(resource=ORDERS)
    assert (answer.status, answer.json()["error"]) == (403, "access_denied")
    page = shop.log_in(shop.ask(resource=ORDERS))
    assert "." not in shop.exchange(page).json()["access_token"]
