"""Stored passwords: how they are checked and hashed again, and the history of former passwords, whose reuse a connection can forbid."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from django.conf import settings

from events.models import Event, Mark
from foundation.database.transactions import unit_of_work
from foundation.hooks import password_changed
from foundation.secrets import hashing
from identity.models import FormerPassword, PasswordCredential, Tenant, User
from identity.services.connections import update_connection
from identity.services.failures import Invalid
from identity.services.passwords import set_password, was_used_before
from identity.services.profile_rules import PasswordTooWeak, check_password, personal_data
from tests.factories.models.identity import ConnectionFactory, UserFactory
from tests.identity.stored_passwords import password_fits

FIRST, SECOND, THIRD, FOURTH = (f"Correct-Horse-{number}" for number in range(4))


def user_of(tenant: Tenant, **options: Any) -> User:
    connection = ConnectionFactory.create(tenant_id=tenant.pk, name="people", strategy=settings.DATABASE_STRATEGY, options=options)
    return UserFactory.create(tenant_id=tenant.pk, connection=connection, email="ada@example.test", password=FIRST)


def test_a_password_matches_until_it_is_changed(tenant: Tenant) -> None:
    user = user_of(tenant)
    set_password(user, SECOND)
    assert not password_fits(user, FIRST)
    assert password_fits(user, SECOND)


def test_former_passwords_are_refused_up_to_the_length_of_the_history(tenant: Tenant) -> None:
    user = user_of(tenant, password_history={"enable": True, "size": 2})
    for password in (SECOND, THIRD, FOURTH):
        set_password(user, password)
    assert [was_used_before(user, password) for password in (FIRST, SECOND, THIRD, FOURTH)] == [False, True, True, True]
    assert FormerPassword.objects.filter(user=user).count() == 2
    with pytest.raises(PasswordTooWeak) as refused:
        check_password(user.connection, THIRD, personal_data(user), user=user)
    assert refused.value.problem.weakness.value == "PasswordHistoryError"


def test_without_a_history_former_passwords_are_accepted_and_deleted_at_the_next_change(tenant: Tenant) -> None:
    user = user_of(tenant, password_history={"enable": True, "size": 2})
    set_password(user, SECOND)
    update_connection(tenant_id=tenant.pk, connection_id=user.connection_id, changes={"options": {}})
    user = User.objects.of(tenant.pk).select_related("connection").get(pk=user.pk)
    assert not was_used_before(user, SECOND)
    set_password(user, THIRD)
    assert not FormerPassword.objects.filter(user=user).exists()


def test_a_password_change_does_not_change_the_profile(tenant: Tenant) -> None:
    user = user_of(tenant)
    before = User.objects.of(tenant.pk).get(pk=user.pk)
    events = Event.objects.filter(tenant_id=tenant.pk).count()
    set_password(user, SECOND)
    after = User.objects.of(tenant.pk).get(pk=user.pk)
    assert after.updated_at == before.updated_at
    assert before.last_password_reset is None
    assert after.last_password_reset is not None
    assert not Mark.objects.filter(tenant_id=tenant.pk).exists()
    assert Event.objects.filter(tenant_id=tenant.pk).count() == events


def test_an_error_in_a_receiver_of_the_signal_rolls_the_new_password_back(tenant: Tenant) -> None:
    heard: list[bool] = []

    def refuse(user: User, *, is_first: bool, **_: Any) -> None:
        heard.append(is_first)
        raise Invalid({"password": ["Not today"]})

    user = user_of(tenant)
    before = PasswordCredential.objects.get(user=user).password_hash
    password_changed.connect(refuse)
    try:
        with pytest.raises(Invalid):
            unit_of_work(set_password)(user, SECOND)
    finally:
        password_changed.disconnect(refuse)
    assert heard == [False]
    assert PasswordCredential.objects.get(user=user).password_hash == before


def test_no_password_matches_the_stand_in() -> None:
    assert hashing.verified(secrets.token_hex(16), hashing.decoy()) == (False, False)


def test_only_hashes_of_the_first_configured_hasher_are_current() -> None:
    assert hashing.is_of_first_kind(hashing.hashed(FIRST))
    assert not hashing.is_of_first_kind("imported$bcrypt$x")
