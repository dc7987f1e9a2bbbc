"""The effects of a removed factor on challenges, sessions and remembered browsers. Also the effect on factors when two users are linked."""

from __future__ import annotations

import pytest

from authapi.factors.challenges import USE, Prover, WrongProof, bound_to_session, check_code
from authapi.factors.limits import Whereabouts
from authapi.models import FactorChallenge, RememberedBrowser, Session
from identity.factors.user_factors import remove_factor
from identity.models import EnrolledFactor, Tenant, User
from identity.services.users import link_users
from tests.factories.models.authapi import FactorChallengeFactory, RememberedBrowserFactory, SessionFactory
from tests.factories.models.identity import EnrolledFactorFactory, UserFactory


@pytest.fixture
def ada(tenant: Tenant) -> User:
    return UserFactory.create(tenant_id=tenant.pk, email="ada@example.test")


def test_a_code_is_refused_if_its_factor_was_removed_at_the_same_time(ada: User) -> None:
    factor = EnrolledFactorFactory.create(user=ada, address="+491712345678")
    session = SessionFactory.create(tenant_id=ada.tenant_id, user=ada)
    FactorChallengeFactory.create(tenant_id=ada.tenant_id, user=ada, factor=factor, bound_to=bound_to_session(session.pk), purpose=USE)
    prover = Prover(ada, Whereabouts("192.0.2.7"), bound_to_session(session.pk))
    # The user has loaded the page. Staff remove the factor before the user submits the code.
    loaded = EnrolledFactor.objects.of(ada.tenant_id).get(pk=factor.pk)
    remove_factor(tenant_id=ada.tenant_id, user_id=ada.user_id, device=factor.device, reason="lost")
    assert not FactorChallenge.objects.of(ada.tenant_id).exists()
    with pytest.raises(WrongProof):
        check_code(prover, loaded, "123456")


def test_a_user_who_removes_a_factor_stays_logged_in(ada: User) -> None:
    factor = EnrolledFactorFactory.create(user=ada, address="+491712345678")
    session = SessionFactory.create(tenant_id=ada.tenant_id, user=ada)
    remembered = RememberedBrowserFactory.create(tenant_id=ada.tenant_id, user=ada)
    remove_factor(tenant_id=ada.tenant_id, user_id=ada.user_id, device=factor.device, is_by_user=True)
    assert Session.objects.of(ada.tenant_id).filter(pk=session.pk).exists()
    assert RememberedBrowser.objects.of(ada.tenant_id).filter(pk=remembered.pk).exists()


def test_factors_of_a_linked_user_are_not_moved_to_the_primary_user(ada: User) -> None:
    bob = UserFactory.create(tenant_id=ada.tenant_id)
    EnrolledFactorFactory.create(user=bob, kind="totp")
    own = EnrolledFactorFactory.create(user=ada, kind="passkey")
    link_users(tenant_id=ada.tenant_id, primary_id=ada.user_id, secondary_id=bob.user_id)
    assert EnrolledFactor.objects.of(ada.tenant_id).get() == own
    ada.refresh_from_db()
    assert ada.multifactor == []
