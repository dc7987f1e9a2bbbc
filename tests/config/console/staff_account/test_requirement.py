"""Accounts that must have a second factor can open only the pages on which they add a factor."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import URLResolver, reverse

from config.console.admin_site import site
from config.console.staff_account.site import OPEN_BEFORE_ENROLMENT
from config.server.live_events import watcher_of
from events.stream.refusals import Refused
from identity.admin.assurance import is_required_of
from identity.models import Staff, Tenant
from identity.staff_roles import ADMINISTRATOR, AUDITOR
from tests.config.console.staff_account.sessions import add_passkey, give_password, is_in
from tests.factories.admin import browser_of, new_staff


def addresses_without_parts() -> list[str]:
    """Return every URL of the admin whose pattern needs no value, except the public URLs."""
    found = []
    for pattern in site.get_urls():
        below = pattern.url_patterns if isinstance(pattern, URLResolver) else [pattern]
        prefix = str(pattern.pattern) if isinstance(pattern, URLResolver) else ""
        found += [f"/admin/{prefix}{one.pattern}" for one in below if getattr(one, "name", None) not in (None, *OPEN_BEFORE_ENROLMENT)]
    return [address for address in found if not set(address) & set("<(?")]


@pytest.fixture
def required(settings: LazySettings) -> None:
    settings.STAFF_SECOND_FACTOR = "all"


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("off", [False, False, False, False]),
        ("operators", [True, True, False, False]),
        ("administrators", [True, True, True, False]),
        ("all", [True, True, True, True]),
    ],
)
def test_the_setting_selects_the_accounts_that_need_a_factor(settings: LazySettings, setting: str, expected: list[bool]) -> None:
    settings.STAFF_SECOND_FACTOR = setting
    accounts = [(None, ADMINISTRATOR), (None, AUDITOR), ("acme", ADMINISTRATOR), ("acme", AUDITOR)]

    assert [is_required_of(Staff(tenant_id=tenant, role=role)) for tenant, role in accounts] == expected


def test_an_account_without_a_factor_can_open_only_the_pages_that_enroll_a_factor(staff: Staff, required: None) -> None:
    browser = browser_of(staff)
    closed = [address for address in addresses_without_parts() if "/login/" not in address]
    for address in closed:
        for answer in (browser.get(address), browser.post(address)):
            assert (answer.status_code, answer.headers.get("location")) == (302, "/admin/account/"), address

    assert len(closed) > 80
    page = browser.get("/admin/account/").content.decode()
    assert "must have a second factor" in page
    assert "/admin/identity/user/" not in page


def test_all_pages_are_accessible_after_the_enrollment(staff: Staff, required: None, visitor: Client) -> None:
    assert give_password(visitor, staff) == "/admin/"
    assert not is_in(visitor)
    add_passkey(visitor)

    assert is_in(visitor)


def test_an_account_that_removes_its_last_factor_must_add_another_factor(staff: Staff, required: None) -> None:
    browser = browser_of(staff)
    add_passkey(browser)
    browser.post(reverse("admin:account_remove", args=(staff.factors.get().pk,)), {"is_last_known": "on"})

    assert browser.get("/admin/").headers["location"] == "/admin/account/"


def test_an_account_without_a_factor_can_sign_out(staff: Staff, required: None) -> None:
    browser = browser_of(staff)
    browser.post(reverse("admin:logout"))

    assert browser.get("/admin/").headers["location"].startswith("/admin/login/")


def test_an_account_without_a_required_factor_cannot_open_the_stream_of_the_live_page(
    staff: Staff, tenant: Tenant, settings: LazySettings
) -> None:
    cookie = f"staff={browser_of(staff).cookies['staff'].value}"
    assert watcher_of(tenant.pk, cookie).tenant_id == tenant.pk

    settings.STAFF_SECOND_FACTOR = "all"
    with pytest.raises(Refused) as refusal:
        watcher_of(tenant.pk, cookie)
    assert refusal.value.status == 401


def test_no_page_asks_for_a_factor_without_the_requirement(staff: Staff, settings: LazySettings) -> None:
    settings.STAFF_SECOND_FACTOR = "operators"

    assert is_in(browser_of(staff))
    assert browser_of(new_staff(None)).get("/admin/").headers["location"] == "/admin/account/"
