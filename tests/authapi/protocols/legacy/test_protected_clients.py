"""Clients that require proof of possession or have a compliance level. No old endpoint issues them a token without that protection."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.accounts.passwordless.addresses import Channel, read_address
from authapi.accounts.passwordless.limits import Place
from authapi.accounts.passwordless.starting import Wanted, start
from authapi.failures.legacy import LegacyCase
from authapi.failures.oauth import OAuthCase
from authapi.models import AccessToken, LoginTicket, PasswordlessCode, SignIn
from authapi.protocols.legacy.requests import JWT_BEARER
from foundation.tenancy import tenant_bound
from identity.services.connections import create_connection
from tests.authapi.memory import forget_all
from tests.authapi.passwordless.conftest import ADA
from tests.authapi.passwordless.messages import last_code
from tests.authapi.protocols.legacy.conftest import OldClient, change, refusal
from tests.authapi.protocols.legacy.test_account_links import begin, logged_in
from tests.authapi.protocols.legacy.test_cross_origin import arrive, ticket_in, told
from tests.authapi.protocols.legacy.test_delegation import delegate, target_of, token_of
from tests.authapi.protocols.legacy.test_device_tokens import log_in as log_in_by_device
from tests.authapi.protocols.legacy.test_device_tokens import register, signed
from tests.authapi.protocols.legacy.test_hosted_login import known, post
from tests.factories.authapi import host_of

FAILURE = LegacyCase.PROTECTED_CLIENT.failure
REFUSED = (FAILURE.status, FAILURE.error, FAILURE.description)
PROTECTIONS = [{"require_proof_of_possession": True}, {"compliance_level": "fapi1_adv_pkj_par"}, {"compliance_level": "fapi2_sp_mtls_mtls"}]


@pytest.fixture(params=PROTECTIONS, ids=lambda settings: "-".join(map(str, *settings.items())))
def protection(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(request.param)


def test_a_password_gets_no_token(old: OldClient, protection: dict[str, Any]) -> None:
    old.set(settings=protection)
    assert refusal(old.log_in()) == REFUSED
    # The request is refused before the password is checked, so the service computes no hash, counts no failure and logs nothing.
    assert refusal(old.log_in(password="wrong")) == REFUSED
    assert not SignIn.objects.of(old.tenant.pk).exists()
    assert not AccessToken.objects.of(old.tenant.pk).exists()


def test_a_code_gets_no_token_and_is_not_used_up(old: OldClient, protection: dict[str, Any]) -> None:
    enabled = [old.client.client_id]
    connection = create_connection(tenant_id=old.tenant.pk, name="email", strategy="email", enabled_clients=enabled, options={})
    with tenant_bound(old.tenant.pk):
        start(Wanted(host_of(old.tenant), old.client, connection, read_address(Channel.EMAIL, ADA), Place("192.0.2.1")))
    old.set(settings=protection)
    assert refusal(old.log_in(connection="email", username=ADA, password=last_code(old.tenant.pk))) == REFUSED
    assert PasswordlessCode.objects.of(old.tenant.pk).get().used_at is None


def test_a_device_token_gets_no_token(old: OldClient, protection: dict[str, Any]) -> None:
    register(old)
    old.set(settings=protection)
    assert refusal(log_in_by_device(old, signed(old))) == REFUSED


def test_a_token_of_a_provider_gets_no_token(old: OldClient, protection: dict[str, Any]) -> None:
    old.set(settings=protection)
    form = {"client_id": old.client.client_id, "access_token": "x", "connection": "corp"}
    assert refusal(old.ask("/oauth/access_token", form)) == REFUSED


def test_a_protected_client_cannot_start_a_delegation_or_be_its_target(old: OldClient, protection: dict[str, Any]) -> None:
    token, target = token_of(old), target_of(old)
    assert delegate(old, id_token=token, target=target.client_id).status == 200
    change(target, settings=protection)
    assert refusal(delegate(old, id_token=token, target=target.client_id)) == REFUSED
    old.set(settings=protection)
    assert refusal(delegate(old, id_token=token)) == REFUSED
    assert refusal(old.ask("/delegation", {"client_id": old.client.client_id, "grant_type": JWT_BEARER, "refresh_token": "x"})) == REFUSED


def test_tokeninfo_refuses_id_tokens_of_a_protected_client(old: OldClient, protection: dict[str, Any]) -> None:
    token = token_of(old)
    old.set(settings=protection)
    assert refusal(old.ask("/tokeninfo", {"id_token": token})) == REFUSED


def test_accounts_cannot_be_linked_or_unlinked(old: OldClient, protection: dict[str, Any]) -> None:
    token = str(old.log_in().json()["access_token"])
    old.set(settings=protection)
    assert refusal(old.ask("/login/unlink", {"access_token": token, "user_id": "auth0|x"})) == REFUSED
    assert told(begin(old, logged_in(old), token)) == {"error": REFUSED[1], "error_description": REFUSED[2]}


def test_a_login_form_of_the_client_is_refused(old: OldClient, protection: dict[str, Any]) -> None:
    ticket = ticket_in(old)
    old.set(settings=protection)
    assert refusal(old.authenticate()) == REFUSED
    assert refusal(post(old)) == REFUSED
    assert LoginTicket.objects.of(old.tenant.pk).count() == 1
    # An earlier ticket is also refused. For a client with a compliance level, there is a second reason for the refusal: the request was not
    # pushed.
    failure = OAuthCase.LEVEL_BREAKS_REQUEST.failure if "compliance_level" in protection else FAILURE
    answer = told(arrive(old, ticket))
    assert (answer["error"], set(answer)) == (failure.error, {"error", "error_description"})
    assert not AccessToken.objects.of(old.tenant.pk).exists()


def test_a_page_of_the_client_cannot_read_which_user_is_logged_in(old: OldClient, protection: dict[str, Any]) -> None:
    origin = "https://app.example.test"
    assert known(old, origin=origin).json()["sso"] is True
    old.set(settings=protection)
    assert known(old, origin=origin).json() == {"sso": False}


def test_a_client_whose_settings_require_no_protection_is_served(old: OldClient) -> None:
    old.set(settings={"require_proof_of_possession": False, "compliance_level": "none"})
    forget_all()
    assert old.log_in().status == 200
