"""The scheduled cleanup deletes expired rows of every tenant in batches, and keeps all other rows. The tests create both kinds of rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.utils import timezone

from authapi import expiry
from authapi.expiry import drop_ended
from authapi.models import (
    AccessToken,
    AccountTicket,
    AuthorizationCode,
    ClientCredential,
    IDToken,
    LoginFailures,
    LoginTransaction,
    RefreshToken,
    RevokedToken,
    SamlKey,
    Session,
    SignIn,
)
from authapi.services.sign_in_log import note
from identity.models import Tenant
from tests.authapi.asgi_client import ask_token
from tests.factories.logins import code_form, code_of, login_of, refresh_form, some_user, web_client
from tests.factories.models.authapi import AccountTicketFactory, LoginFailuresFactory, LoginTransactionFactory, RevokedTokenFactory

ROTATING = {"refresh_token": {"rotation_type": "rotating", "expiration_type": "expiring"}}


def test_rows_of_a_login_are_kept_while_they_are_needed_and_deleted_afterwards(tenant: Tenant) -> None:
    registered = web_client(tenant, settings=ROTATING)
    login = login_of(tenant, registered, some_user(tenant), scope="openid offline_access")
    first = ask_token(tenant, code_form(registered, code_of(login))).json()["refresh_token"]
    assert ask_token(tenant, refresh_form(registered, first)).status == 200
    code_of(login)
    drop_ended()
    # A used code and a rotated token are kept, so that a replay is recognized.
    assert counts(tenant) == {AuthorizationCode: 2, RefreshToken: 2, AccessToken: 2}

    now = timezone.now()
    AuthorizationCode.objects.of(tenant.pk).update(expires=now - timedelta(minutes=1))
    RefreshToken.objects.of(tenant.pk).filter(is_rotated=True).update(revoked=now - timedelta(days=31))
    AccessToken.objects.of(tenant.pk).update(expires=now - timedelta(seconds=1))
    drop_ended()
    assert counts(tenant) == {AuthorizationCode: 1, RefreshToken: 1, AccessToken: 0}

    AuthorizationCode.objects.of(tenant.pk).update(expires=now - timedelta(days=2))
    RefreshToken.objects.of(tenant.pk).update(idle_expires_at=now - timedelta(seconds=1))
    drop_ended()
    assert counts(tenant) == {AuthorizationCode: 0, RefreshToken: 0, AccessToken: 0}


def counts(tenant: Tenant) -> dict[Any, int]:
    return {model: model.objects.of(tenant.pk).count() for model in (AuthorizationCode, RefreshToken, AccessToken)}


def test_tokens_without_an_expiry_are_kept(tenant: Tenant) -> None:
    registered = web_client(tenant, settings={"refresh_token": {"rotation_type": "non-rotating", "expiration_type": "non-expiring"}})
    login = login_of(tenant, registered, some_user(tenant), scope="openid offline_access")
    ask_token(tenant, code_form(registered, code_of(login)))
    RefreshToken.objects.of(tenant.pk).update(created=timezone.now() - timedelta(days=5000))
    drop_ended()
    assert RefreshToken.objects.of(tenant.pk).count() == 1


def test_the_sign_in_log_is_kept_for_the_number_of_days_in_the_setting(tenant: Tenant, settings: Any) -> None:
    settings.SIGN_IN_LOG_DAYS = 10
    for name in ("old", "new"):
        note(tenant_id=tenant.pk, type="s", is_success=True, user_name=name)
    SignIn.objects.of(tenant.pk).filter(user_name="old").update(created_at=timezone.now() - timedelta(days=11))
    drop_ended()
    assert [line.user_name for line in SignIn.objects.of(tenant.pk)] == ["new"]


def test_expired_requests_links_and_failures_are_deleted(tenant: Tenant) -> None:
    user, registered, now = some_user(tenant), web_client(tenant), timezone.now()
    for digest, moment in (("a" * 64, now - timedelta(seconds=1)), ("b" * 64, now + timedelta(hours=1))):
        LoginTransactionFactory.create(client=registered.client, digest=digest, expires_at=moment)
        AccountTicketFactory.create(user=user, digest=digest, expires_at=moment - timedelta(days=7))
        RevokedTokenFactory.create(tenant_id=tenant.pk, jti=digest, expires_at=moment)
        last_failed_at = moment - timedelta(days=30)
        LoginFailuresFactory.create(connection=user.connection, identifier=digest, last_failed_at=last_failed_at)
    drop_ended()
    for model, field in ((LoginTransaction, "digest"), (AccountTicket, "digest"), (RevokedToken, "jti"), (LoginFailures, "identifier")):
        assert list(model.objects.of(tenant.pk).values_list(field, flat=True)) == ["b" * 64]


def test_many_rows_are_deleted_in_batches_until_the_time_limit(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "_BATCH", 2)
    past = timezone.now() - timedelta(seconds=1)
    RevokedToken.objects.of(tenant.pk).bulk_create(RevokedToken(tenant=tenant, jti=f"{n}", expires_at=past) for n in range(5))
    assert drop_ended(seconds=0) == 0
    assert drop_ended() >= 5
    assert not RevokedToken.objects.of(tenant.pk).exists()


MOMENTS = {"expires", "expires_at", "idle_expires_at"}
# Models that the cleanup table leaves out. Another task ends sessions, and notifies their clients. Only staff delete expired credentials of
# clients and expired SAML certificates; a partner may still use such a certificate. Id tokens are not stored.
OTHERWISE = {Session, ClientCredential, IDToken, SamlKey}


def test_every_model_with_an_expiry_is_in_the_cleanup_table() -> None:
    models = set(apps.get_app_config("authapi").get_models())
    ending = {model for model in models if MOMENTS & {field.name for field in model._meta.get_fields()}}
    assert ending - OTHERWISE <= {row.model for row in expiry.endings(timezone.now())}
