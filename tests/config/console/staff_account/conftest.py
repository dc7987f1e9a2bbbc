"""A tenant admin with and without factors. Each browser has its own IP address, so that tests do not share counters of failures."""

from __future__ import annotations

import secrets

import pytest
from django.test import Client

from identity.models import Staff, StaffFactor, Tenant
from tests.factories.admin import PLATFORM, new_staff
from tests.factories.staff_factors import add_app


@pytest.fixture
def staff(tenant: Tenant) -> Staff:
    return new_staff(tenant)


@pytest.fixture
def app(staff: Staff) -> StaffFactor:
    """Return an authenticator app of the account."""
    return add_app(staff)


@pytest.fixture
def visitor() -> Client:
    return Client(headers={"host": PLATFORM}, REMOTE_ADDR=f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}::1")
