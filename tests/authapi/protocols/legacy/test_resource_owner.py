"""`/oauth/ro` with a password: each row of the contract, the rules for all logins, and refusals that do not reveal which users exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from authapi.models import RefreshToken, SignIn
from authapi.protocols.legacy.opting_in import PASSWORD as GRANT
from foundation.tenancy import tenant_bound
from identity.services.connections import create_connection
from identity.services.users import update_user
from tests.authapi.asgi_client import read_profile
from tests.authapi.forging import decoded
from tests.authapi.protocols.legacy.conftest import EMAIL, GRANTS, OldClient, refusal
from tests.factories.breach_list import detect, use_list, write_list
from tests.factories.sign_in import PASSWORD

WRONG = (401, "invalid_user_password", "Wrong email or password.")


@pytest.mark.parametrize("missing", ["client_id", "grant_type", "username", "password", "connection"])
def test_the_refusal_names_a_missing_parameter(old: OldClient, missing: str) -> None:
    assert refusal(old.log_in(**{missing: None})) == (400, "invalid_request", f"missing {missing} parameter")


def test_an_unknown_client_is_refused(old: OldClient) -> None:
    assert refusal(old.log_in(client_id="nobody")) == (403, "unauthorized_client", "invalid client")


def test_a_client_without_the_grant_is_refused_before_any_password_is_checked(old: OldClient) -> None:
    old.set(grant_types=[grant for grant in GRANTS if grant != GRANT])
    assert refusal(old.log_in()) == (403, "unauthorized_client", f"Grant type '{GRANT}' not allowed for the client.")
    assert not SignIn.objects.of(old.tenant.pk).exists()


def test_a_client_of_another_tenant_is_unknown(old: OldClient, second: OldClient) -> None:
    assert refusal(old.log_in(client_id=second.client.client_id)) == (403, "unauthorized_client", "invalid client")


@pytest.mark.parametrize("changes", [{"password": "wrong"}, {"username": "nobody@example.test"}])
def test_a_wrong_password_and_an_unknown_user_get_the_same_refusal(old: OldClient, changes: dict[str, str]) -> None:
    answer = old.log_in(**changes)
    assert refusal(answer) == WRONG
    assert "www-authenticate" not in answer.headers


def test_an_unknown_user_costs_one_hash_like_a_known_user(old: OldClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from authapi.accounts import password_login

    checked: list[str] = []
    verified: Any = vars(password_login)["verified"]

    def noted(password: str, stored: str) -> Any:
        checked.append(stored)
        return verified(password, stored)

    monkeypatch.setattr(password_login, "verified", noted)
    old.log_in(username="nobody@example.test")
    assert len(checked) == 1


def test_both_old_endpoints_report_a_breached_password_only_if_the_password_is_right(old: OldClient, tmp_path: Path, settings: Any) -> None:
    use_list(settings, write_list(tmp_path / "list", PASSWORD, "wrong"))
    detect(old.tenant.pk, "block")
    leaked = (401, "password_leaked", "This password was found in a data breach. Choose a new password.")
    assert refusal(old.log_in()) == leaked
    assert refusal(old.authenticate()) == leaked
    assert refusal(old.log_in(password="wrong")) == WRONG
    assert not RefreshToken.objects.of(old.tenant.pk).exists()
    use_list(settings, "")
    assert old.log_in().status == 200


def test_only_the_right_password_reveals_that_a_user_is_blocked(old: OldClient) -> None:
    update_user(tenant_id=old.tenant.pk, user_id=old.user.user_id, changes={"blocked": True})
    assert refusal(old.log_in()) == (401, "unauthorized", "user is blocked")
    assert refusal(old.log_in(password="wrong")) == WRONG


def test_too_many_failures_block_the_account_as_at_the_token_endpoint(old: OldClient) -> None:
    for _ in range(10):
        assert refusal(old.log_in(password="wrong")) == WRONG
    status, error, _ = refusal(old.log_in())
    assert (status, error) == (429, "too_many_attempts")


def test_too_many_logins_of_one_user_are_refused(old: OldClient) -> None:
    answers = [old.log_in().status for _ in range(20)]
    assert answers == [200] * 20
    status, error, _ = refusal(old.log_in())
    assert (status, error) == (429, "too_many_logins")


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("", "the connection was not found"),
        ("database", "the connection was disabled"),
        ("oidc", "specified strategy does not support requested operation"),
    ],
)
def test_the_refusal_says_why_a_connection_is_unusable(old: OldClient, strategy: str, words: str) -> None:
    if strategy:
        enabled = [] if strategy == "database" else [old.client.client_id]
        options = {"client_id": "x", "issuer": "https://id.example.test"} if strategy == "oidc" else {}
        create_connection(tenant_id=old.tenant.pk, name="other", strategy=strategy, enabled_clients=enabled, options=options)
    assert refusal(old.log_in(connection="other")) == (400, "invalid_request", words)


def test_another_grant_type_is_refused(old: OldClient) -> None:
    status, error, words = refusal(old.log_in(grant_type="client_credentials"))
    assert (status, error) == (400, "invalid_request")
    assert words.startswith("The grant_type must be password or urn:")


def test_the_setting_for_rfc_9700_disables_this_grant_too(old: OldClient, settings: Any) -> None:
    settings.OAUTH2_PROVIDER = {**settings.OAUTH2_PROVIDER, "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True}
    assert refusal(old.log_in())[:2] == (400, "unsupported_grant_type")


def test_a_login_without_the_required_organization_is_refused(old: OldClient) -> None:
    old.set(settings={"organization_usage": "require"})
    assert refusal(old.log_in()) == (400, "invalid_request", "parameter organization is required for this client")
    assert not SignIn.objects.of(old.tenant.pk).exists()


def test_the_right_password_gets_an_id_token_and_a_token_for_the_profile(old: OldClient) -> None:
    answer = old.log_in(scope="openid email")
    members = answer.json()
    assert (answer.status, answer.headers["Cache-Control".lower()]) == (200, "no-store")
    assert members.keys() == {"access_token", "id_token", "token_type", "expires_in"}
    claims = decoded(members["id_token"])[1]
    assert (claims["sub"], claims["aud"], claims["email"]) == (old.user.user_id, old.client.client_id, EMAIL)
    assert read_profile(old.tenant, members["access_token"]).json()["sub"] == old.user.user_id
    with tenant_bound(old.tenant.pk):
        assert [(line.type, line.client_id) for line in SignIn.objects.all()] == [("s", old.client.client_id)]


def test_no_id_token_is_issued_without_the_scope_openid(old: OldClient) -> None:
    assert "id_token" not in old.log_in(scope="profile").json()


def test_the_default_audience_of_the_tenant_does_not_apply_at_this_endpoint(old: OldClient) -> None:
    from authapi.services.api_resources import create_api_resource
    from authapi.services.tenant_settings import update_tenant_settings

    create_api_resource(tenant_id=old.tenant.pk, identifier="urn:orders", scopes=[{"value": "read", "description": ""}])
    update_tenant_settings(tenant_id=old.tenant.pk, changes={"default_audience": "urn:orders"})
    members = old.log_in(scope="openid read").json()
    assert "." not in members["access_token"]


def test_the_refresh_token_stores_the_name_of_the_device(old: OldClient) -> None:
    members = old.log_in(scope="openid offline_access", device="Ada's phone").json()
    assert members["refresh_token"]
    row = RefreshToken.objects.of(old.tenant.pk).get()
    assert row.initial_user_agent == "Ada's phone"
