"""`POST /oauth/device/code`: which clients get codes, the format of codes, and their limits (RFC 8628, 3.1 and 6.1)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from authapi.clients.user_codes import UserCodeForm, plain
from authapi.edge.rate_figures import DEVICE_CODES_OF_PLACE
from authapi.models import DeviceGrant
from authapi.services.api_resources import create_api_resource
from authapi.services.tenant_settings import update_tenant_settings
from identity.models import Tenant
from identity.services.failures import Invalid
from tests.authapi.protocols.device.conftest import Television, set_form, television
from tests.authapi.token_forms import basic


def test_a_device_gets_a_device_code_and_a_user_code(tv: Television) -> None:
    answer = tv.start()
    codes = answer.json()
    issuer = f"http://{tv.tenant.pk}.example.test/"
    assert answer.status == 200
    assert answer.headers["cache-control"] == "no-store"
    assert re.fullmatch(r"[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", codes["user_code"])
    assert {name: value for name, value in codes.items() if name not in ("device_code", "user_code")} == {
        "verification_uri": f"{issuer}activate",
        "verification_uri_complete": f"{issuer}activate?user_code={codes['user_code']}",
        "expires_in": 900,
        "interval": 5,
    }


def test_codes_are_not_stored_in_plain_text(tv: Television) -> None:
    code = tv.begin()
    stored = str(DeviceGrant.objects.of(tv.tenant.pk).values().get())
    for secret in (code, plain(code), tv.codes["device_code"]):
        assert secret not in stored


@pytest.mark.parametrize("as_json", [False, True])
def test_a_confidential_client_must_authenticate_first(tenant: Tenant, as_json: bool) -> None:
    tv = television(tenant, token_endpoint_auth_method="client_secret_post")
    assert tv.start(as_json=as_json).status == 200
    refused = tv.start(as_json=as_json, client_secret="wrong", audience="https://nowhere.example.test")
    assert (refused.status, refused.json()["error"]) == (401, "invalid_client")
    assert tv.start(client_secret=None, as_json=as_json).status == 401


def test_basic_authentication_is_accepted_if_the_client_registered_it(tenant: Tenant) -> None:
    tv = television(tenant, token_endpoint_auth_method="client_secret_basic")
    assert tv.start(client_id=None, client_secret=None, headers=basic(tv.client.client_id, tv.secret)).status == 200


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        ({"client_id": None}, 401, "invalid_client"),
        ({"client_id": "unknown"}, 401, "invalid_client"),
        ({"audience": "https://nowhere.example.test"}, 403, "access_denied"),
        ({"scope": "a" * 10_241}, 400, "invalid_request"),
        ({"scope": "a\x00b"}, 400, "invalid_request"),
    ],
    ids=["no client", "an unknown client", "an unknown API", "a long scope", "a NUL character"],
)
def test_a_request_that_cannot_be_granted_is_refused_immediately(tv: Television, changes: dict[str, Any], status: int, error: str) -> None:
    answer = tv.start(**changes)
    assert (answer.status, answer.json()["error"]) == (status, error)
    assert not DeviceGrant.objects.of(tv.tenant.pk).exists()


def test_a_client_without_the_grant_type_of_device_codes_gets_no_code(tenant: Tenant) -> None:
    answer = television(tenant, grant_types=["authorization_code"]).start()
    assert (answer.status, answer.json()["error"]) == (403, "unauthorized_client")


def test_a_client_without_access_to_the_api_gets_no_code(tv: Television) -> None:
    create_api_resource(
        tenant_id=tv.tenant.pk,
        identifier="https://films.example.test",
        name="Films",
        scopes=[{"value": "watch"}],
        settings={"subject_type_authorization": {"user": {"policy": "require_client_grant"}}},
    )
    assert tv.start(audience="https://films.example.test").json()["error"] == "access_denied"


def test_each_ip_address_has_its_own_limit_of_codes(tv: Television, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("authapi.protocols.device.starting.DEVICE_CODES_OF_PLACE", type(DEVICE_CODES_OF_PLACE)("device_few", 2, 3600.0))
    assert [tv.start().status for _ in range(3)] == [200, 200, 429]
    assert tv.start(address="198.51.100.8").status == 200


def test_two_devices_of_a_tenant_cannot_have_the_same_user_code(tv: Television, monkeypatch: pytest.MonkeyPatch) -> None:
    code = tv.begin()
    drawn = iter([code, code.lower().replace("-", ""), "BBBB-BBBB"])
    monkeypatch.setattr(UserCodeForm, "new_code", lambda form: next(drawn))
    assert tv.begin() == "BBBB-BBBB"
    row = tv.row
    row.pk, row.device_code = None, "other"
    with pytest.raises(IntegrityError), transaction.atomic():
        row.save(force_insert=True)


def test_a_tenant_can_choose_digits_or_another_format(tv: Television) -> None:
    set_form(tv.tenant, charset="digits")
    assert re.fullmatch(r"\d{3}-\d{3}-\d{3}", tv.begin())
    set_form(tv.tenant, charset="base20", mask="*** *** ***")
    assert re.fullmatch(r"[A-Z]{3} [A-Z]{3} [A-Z]{3}", tv.begin())
    assert tv.ask(tv.codes["user_code"]).status == 200


@pytest.mark.parametrize(
    "device_flow",
    [
        {"charset": "base20", "mask": "***-***"},
        {"charset": "digits", "mask": "****-****"},
        {"charset": "base20", "mask": "****.****"},
        {"charset": "base20", "mask": "*" * 21},
        {"charset": "letters"},
    ],
    ids=["too few letters", "too few digits", "unsupported separator", "too long", "unknown character set"],
)
def test_a_code_format_that_is_too_easy_to_guess_is_refused(tenant: Tenant, device_flow: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        update_tenant_settings(tenant_id=tenant.pk, changes={"device_flow": device_flow})


@pytest.mark.parametrize("typed", ["wdjb-mjht", "WDJBMJHT", " w d j b m j h t ", "wdjb\u2013mjht"])
def test_a_user_can_type_a_code_in_various_forms(typed: str) -> None:
    assert UserCodeForm().shown(typed) == "WDJB-MJHT"
    assert UserCodeForm().shown("WDJB-MJH0") == ""
