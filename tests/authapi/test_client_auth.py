"""Client authentication at the token endpoint: one registered method, spellings of the secret, and counted failures."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote_plus

import pytest
import time_machine

from authapi.failures.requests import TOO_MANY_REQUESTS
from identity.models import Tenant
from tests.authapi.asgi_client import ask_token
from tests.authapi.token_forms import basic, form_of
from tests.factories.authapi import granted_client

MINUTE_BEGINS = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("scheme", ["Basic", "basic", "BASIC"])
def test_a_client_with_basic_authentication_may_send_its_secret_without_percent_encoding(tenant: Tenant, scheme: str) -> None:
    registered = granted_client(tenant, token_endpoint_auth_method="client_secret_basic")
    headers = {"Authorization": basic(registered.client_id, registered.secret)["Authorization"].replace("Basic", scheme)}
    assert ask_token(tenant, form_of(tenant, registered, client_id=None, client_secret=None), headers=headers).status == 200


def test_a_client_with_basic_authentication_may_send_its_secret_percent_encoded(tenant: Tenant) -> None:
    registered = granted_client(tenant, token_endpoint_auth_method="client_secret_basic")
    encoded = "".join(f"%{ord(character):02X}" for character in registered.secret)
    headers = basic(quote_plus(registered.client_id), encoded)
    assert ask_token(tenant, form_of(tenant, registered, client_secret=None), headers=headers).status == 200


@pytest.mark.parametrize("registered_for", ["client_secret_post", "client_secret_basic"])
def test_an_authentication_method_other_than_the_registered_method_is_refused(tenant: Tenant, registered_for: str) -> None:
    registered = granted_client(tenant, token_endpoint_auth_method=registered_for)
    if registered_for == "client_secret_post":
        form, headers = form_of(tenant, registered, client_secret=None), basic(registered.client_id, registered.secret)
    else:
        form, headers = form_of(tenant, registered), {}
    answer = ask_token(tenant, form, headers=headers)
    assert (answer.status, answer.json()) == (401, {"error": "access_denied", "error_description": "Unauthorized"})


def test_two_authentication_methods_in_one_request_are_an_invalid_request(tenant: Tenant) -> None:
    registered = granted_client(tenant)
    answer = ask_token(tenant, form_of(tenant, registered), headers=basic(registered.client_id, registered.secret))
    assert (answer.status, answer.json()["error"]) == (400, "invalid_request")


@pytest.mark.parametrize("credential", ["Basic", "Basic !!!", "Basic " + base64.b64encode(b"no-colon").decode(), "Basic /w=="])
def test_an_invalid_basic_header_gets_401(tenant: Tenant, credential: str) -> None:
    answer = ask_token(tenant, {"grant_type": "client_credentials"}, headers={"Authorization": credential})
    assert answer.status == 401


def test_valid_clients_are_served_even_if_failures_of_their_ip_address_get_429(tenant: Tenant, settings: Any) -> None:
    settings.FAILED_AUTHENTICATIONS_PER_MINUTE = 3
    registered = granted_client(tenant)
    wrong, right = form_of(tenant, registered, client_secret="wrong"), form_of(tenant, registered)
    with time_machine.travel(MINUTE_BEGINS):
        statuses = [ask_token(tenant, wrong, address="198.51.100.7").status for _ in range(5)]
        good = ask_token(tenant, right, address="198.51.100.7")
        refused = ask_token(tenant, wrong, address="198.51.100.7")
        other = ask_token(tenant, wrong, address="198.51.100.8")
    assert statuses == [401, 401, 401, 429, 429]
    assert (good.status, good.headers["x-ratelimit-limit"]) == (200, "200")
    assert refused.json() == {"error": "too_many_requests", "error_description": TOO_MANY_REQUESTS}
    assert (refused.headers["x-ratelimit-limit"], refused.headers["x-ratelimit-remaining"]) == ("3", "0")
    assert refused.headers["x-ratelimit-reset"] == str(int(MINUTE_BEGINS.timestamp()) + 60)
    assert int(refused.headers["retry-after"]) >= 1
    assert other.status == 401


def test_failed_authentications_of_an_ip_address_are_counted_per_minute(tenant: Tenant, settings: Any) -> None:
    settings.FAILED_AUTHENTICATIONS_PER_MINUTE = 1
    registered = granted_client(tenant)
    wrong = form_of(tenant, registered, client_secret="wrong")
    with time_machine.travel(MINUTE_BEGINS):
        assert [ask_token(tenant, wrong).status for _ in range(2)] == [401, 429]
    with time_machine.travel(MINUTE_BEGINS + timedelta(minutes=1)):
        assert ask_token(tenant, wrong).status == 401
