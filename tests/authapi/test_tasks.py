"""Scheduled tasks, called as functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from authapi import tasks
from authapi.models import DeviceGrant, SigningKey
from authapi.tokens.keys import ensure_keys, signing_key
from identity.models import Tenant
from tests.factories.models.authapi import DeviceGrantFactory


def test_pruning_deletes_only_expired_rows(tenant: Tenant) -> None:
    now = datetime.now(UTC)
    _old, new = (DeviceGrantFactory.create(tenant_id=tenant.pk, expires=now + timedelta(hours=hours)) for hours in (-25, -23))
    tasks.prune()
    assert list(DeviceGrant.objects.of(tenant.pk)) == [new]


def test_keys_rotate_after_the_configured_number_of_days_or_never_if_it_is_zero(tenant: Tenant, settings: Any) -> None:
    old = ensure_keys(tenant.pk)
    SigningKey.objects.of(tenant.pk).filter(pk=old.pk).update(current_since=datetime(2000, 1, 1, tzinfo=UTC))
    settings.SIGNING_KEY_DAYS = 0
    tasks.rotate_keys()
    assert signing_key(tenant.pk)[0] == old.kid
    settings.SIGNING_KEY_DAYS = 90
    tasks.rotate_keys()
    assert signing_key(tenant.pk)[0] != old.kid
