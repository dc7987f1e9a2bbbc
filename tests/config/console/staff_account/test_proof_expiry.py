"""A proof expires at an exact second. Only a new proof extends this time. The proof is not valid for another session or account."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.conf import settings
from django.test import Client
from django.urls import reverse

from authapi.models import Client as AuthClient
from identity.models import Tenant
from tests.factories.admin import PASSWORD, browser_of, new_staff
from tests.factories.sign_in import web_client

BEGIN = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
PROVE = "/admin/account/prove/"


@pytest.fixture
def rotation(tenant: Tenant) -> str:
    """Return the URL of a page that requires a proof."""
    client, _ = web_client(tenant)
    return reverse("admin:authapi_client_action", args=(client.pk, "rotate-secret"))


def is_asked(browser: Client, address: str) -> bool:
    answer = browser.get(address)
    return answer.status_code == 302 and PROVE in answer.headers["location"]


def test_a_proof_expires_at_an_exact_second_and_requests_do_not_extend_it(tenant: Tenant, rotation: str) -> None:
    minutes = settings.STAFF_PROOF_MINUTES
    with time_machine.travel(BEGIN, tick=False) as clock:
        browser = browser_of(new_staff(tenant))
        for minute in range(1, minutes):
            clock.move_to(BEGIN + timedelta(minutes=minute))
            assert not is_asked(browser, rotation)
            browser.get("/admin/")
        clock.move_to(BEGIN + timedelta(minutes=minutes, seconds=-1))
        assert not is_asked(browser, rotation)
        clock.move_to(BEGIN + timedelta(minutes=minutes))
        assert is_asked(browser, rotation)


def test_a_form_opened_before_the_proof_expires_is_refused_afterwards(tenant: Tenant, rotation: str) -> None:
    client = AuthClient.objects.of(tenant.pk).get()
    with time_machine.travel(BEGIN, tick=False) as clock:
        browser = browser_of(new_staff(tenant))
        assert browser.get(rotation).status_code == 200
        clock.move_to(BEGIN + timedelta(minutes=settings.STAFF_PROOF_MINUTES))
        answer = browser.post(rotation, {"confirm": "yes"})
        assert PROVE in answer.headers["location"]
    assert AuthClient.objects.of(tenant.pk).get().secret_digest == client.secret_digest


def test_a_proof_is_valid_for_one_session_and_account(tenant: Tenant, rotation: str) -> None:
    first, second = new_staff(tenant), new_staff(tenant)
    with time_machine.travel(BEGIN, tick=False) as clock:
        proven, old = browser_of(first), browser_of(first)
        clock.move_to(BEGIN + timedelta(minutes=settings.STAFF_PROOF_MINUTES + 1))
        assert is_asked(old, rotation)
        answer = proven.post(PROVE, {"password": PASSWORD, "next": rotation})
        assert answer.status_code == 302, answer.content
        assert not is_asked(proven, rotation)
        assert is_asked(old, rotation)
        # Another account that signs in to the same browser does not get the proof of the previous account.
        proven.force_login(second)
        assert is_asked(proven, rotation)
