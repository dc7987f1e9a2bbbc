"""Browsers in which a tenant admin or a platform operator has signed in."""

from __future__ import annotations

import pytest
from django.test import Client

from identity.models import Staff, Tenant
from tests.factories.admin import browser_of, new_staff


@pytest.fixture
def staff(tenant: Tenant) -> Staff:
    return new_staff(tenant)


@pytest.fixture
def browser(staff: Staff) -> Client:
    return browser_of(staff)


@pytest.fixture
def operator(committed_db: None) -> Client:
    return browser_of(new_staff(None))
