"""Sign-in to the admin, and its limits after too many failures."""

from __future__ import annotations

import secrets

import pytest
from django.test import Client, RequestFactory

from authapi.edge import throttling
from config.console import admin_login
from config.console.staff_account.known_devices import known_device
from identity.models import Staff, Tenant
from identity.services.staff import update_staff
from identity.services.tenants import set_tenant_status
from tests.factories.admin import PASSWORD, PLATFORM, new_staff
from tests.factories.models.identity import StaffFactory

LOGIN = "/admin/login/"


@pytest.fixture
def staff(tenant: Tenant) -> Staff:
    return new_staff(tenant)


@pytest.fixture
def visitor() -> Client:
    """Return a browser with its own IP address, so that tests do not share counters of failures."""
    return stranger()


def stranger() -> Client:
    """Return a browser with an IP address in its own network."""
    return Client(headers={"host": PLATFORM}, REMOTE_ADDR=f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}::1")


def attempt(browser: Client, email: str, password: str = PASSWORD) -> str:
    """Try to sign in. Return the URL of the redirect, or the page with the refusal."""
    answer = browser.post(LOGIN, {"username": email, "password": password, "next": "/admin/"})
    return answer.headers.get("location", "") or answer.content.decode()


def test_staff_can_type_their_email_address_in_any_case_of_letters(visitor: Client, staff: Staff) -> None:
    assert attempt(visitor, staff.email.upper()) == "/admin/"
    assert visitor.get("/admin/").status_code == 200


def test_an_address_with_a_dotless_i_instead_of_an_i_does_not_match(visitor: Client, tenant: Tenant) -> None:
    email = f"admin-{secrets.token_hex(4)}@example.test"
    StaffFactory.create(tenant_id=tenant.pk, email=email, password=PASSWORD)

    # The capital letter of a dotless i (U+0131) is I. Failures with this spelling are counted separately. So if this spelling found the
    # account, an attacker could make more guesses.
    assert "Wrong email address or password." in attempt(visitor, email.replace("i", "\u0131"))
    assert attempt(visitor, email.upper()) == "/admin/"


def test_signing_out_shows_a_confirmation_and_a_link_to_the_sign_in_page(visitor: Client, staff: Staff) -> None:
    attempt(visitor, staff.email)

    page = visitor.post("/admin/logout/").content.decode()

    assert "You are logged out" in page
    assert 'href="/admin/"' in page
    assert "quality time" not in page


@pytest.mark.parametrize("following", ["https://elsewhere.example.test/", "//elsewhere.example.test/", "javascript:alert(1)"])
def test_a_sign_in_that_names_another_site_redirects_to_the_admin(visitor: Client, staff: Staff, following: str) -> None:
    answer = visitor.post(LOGIN, {"username": staff.email, "password": PASSWORD, "next": following})
    assert answer.headers["location"] == "/admin/"


def test_every_page_requires_a_sign_in(visitor: Client, committed_db: None) -> None:
    answer = visitor.get("/admin/identity/user/")

    assert answer.headers["location"] == "/admin/login/?next=/admin/identity/user/"


def test_the_session_cookie_is_limited_to_the_admin_and_hidden_from_scripts(visitor: Client, staff: Staff) -> None:
    attempt(visitor, staff.email)
    cookie = visitor.cookies["staff"]

    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert not cookie["domain"]


@pytest.mark.parametrize("case", ["wrong password", "unknown account", "switched off", "suspended tenant"])
def test_every_refused_sign_in_shows_the_same_text(visitor: Client, staff: Staff, case: str) -> None:
    email, password = staff.email, PASSWORD
    if case == "wrong password":
        password = "wrong"
    if case == "unknown account":
        email = "nobody@example.test"
    if case == "switched off":
        update_staff(staff_id=staff.pk, by=new_staff(None), is_active=False)
    if case == "suspended tenant":
        set_tenant_status(tenant_id=str(staff.tenant_id), status=Tenant.Status.SUSPENDED)

    assert "Wrong email address or password." in attempt(visitor, email, password)


def test_a_session_ends_when_its_tenant_is_suspended(visitor: Client, staff: Staff) -> None:
    attempt(visitor, staff.email)
    set_tenant_status(tenant_id=str(staff.tenant_id), status=Tenant.Status.SUSPENDED)

    assert visitor.get("/admin/").headers["location"].startswith(LOGIN)


def test_failures_from_one_ip_address_block_the_account_only_for_that_ip_address(visitor: Client, staff: Staff) -> None:
    for _ in range(admin_login.FAILURES_PER_ACCOUNT_AND_ADDRESS):
        attempt(visitor, staff.email, "wrong")

    assert "Too many failed attempts" in attempt(visitor, staff.email)
    assert attempt(stranger(), staff.email) == "/admin/"


def test_guesses_from_many_ip_addresses_block_the_account_except_on_a_known_device(
    visitor: Client, staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_login, "FAILURES_PER_ACCOUNT", 12)
    assert attempt(visitor, staff.email) == "/admin/"
    for _ in range(12):
        attempt(stranger(), staff.email, "wrong")

    # The right password is sent from an IP address for which no failure is counted. A right guess must get the same answer as a wrong
    # guess.
    assert "Too many failed attempts" in attempt(stranger(), staff.email)
    visitor.post("/admin/logout/")
    assert attempt(visitor, staff.email) == "/admin/"
    # The known device can also sign in from another IP address.
    visitor.defaults["REMOTE_ADDR"] = stranger().defaults["REMOTE_ADDR"]
    assert attempt(visitor, staff.email) == "/admin/"


def test_guesses_from_a_known_device_are_blocked_as_well(visitor: Client, staff: Staff) -> None:
    attempt(visitor, staff.email)
    for _ in range(admin_login.FAILURES_PER_DEVICE):
        attempt(visitor, staff.email, "wrong")

    assert "Too many failed attempts" in attempt(visitor, staff.email)
    # Only that device is blocked.
    assert attempt(stranger(), staff.email) == "/admin/"


def test_a_device_is_known_only_for_accounts_that_signed_in_from_it(visitor: Client, staff: Staff, tenant: Tenant) -> None:
    other, third = new_staff(tenant), new_staff(tenant)
    request = RequestFactory()
    for account in (staff, other):
        attempt(visitor, account.email)
        visitor.post("/admin/logout/")
    cookies = {"staff_device": visitor.cookies["staff_device"].value}
    sent = request.get("/", headers={"cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())})

    assert known_device(sent, staff.email.upper()) == known_device(sent, other.email) is not None
    assert known_device(sent, third.email) is None


@pytest.mark.parametrize("cookie", ["made.up", "device.account:1vZ:forged", ""])
def test_a_forged_cookie_does_not_make_a_device_known(visitor: Client, staff: Staff, cookie: str) -> None:
    visitor.cookies["staff_device"] = cookie
    for _ in range(admin_login.FAILURES_PER_ACCOUNT_AND_ADDRESS):
        attempt(visitor, staff.email, "wrong")

    assert "Too many failed attempts" in attempt(visitor, staff.email)


def test_the_cookie_of_a_known_device_is_hidden_from_scripts_and_names_no_account(visitor: Client, staff: Staff) -> None:
    attempt(visitor, staff.email)
    cookie = visitor.cookies["staff_device"]

    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert not cookie["domain"]
    assert staff.email not in cookie.value


def test_an_ipv6_network_counts_as_one_ip_address(staff: Staff) -> None:
    network = f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}"
    for number in range(admin_login.FAILURES_PER_ACCOUNT_AND_ADDRESS):
        attempt(Client(headers={"host": PLATFORM}, REMOTE_ADDR=f"{network}::{number + 1:x}"), staff.email, "wrong")

    assert "Too many failed attempts" in attempt(Client(headers={"host": PLATFORM}, REMOTE_ADDR=f"{network}:1::1"), staff.email)


def test_failures_from_one_ip_address_block_it_for_every_account(visitor: Client, staff: Staff, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_login, "FAILURES_PER_ADDRESS", 2)
    for name in ("a", "b"):
        attempt(visitor, f"{name}@example.test", "wrong")

    assert "Too many failed attempts" in attempt(visitor, staff.email)


def test_login_protection_stays_on_without_rate_limits(visitor: Client, staff: Staff, settings: object) -> None:
    settings.RATE_LIMITS_ENABLED = False  # type: ignore[attr-defined]
    for _ in range(admin_login.FAILURES_PER_ACCOUNT_AND_ADDRESS):
        attempt(visitor, staff.email, "wrong")

    assert "Too many failed attempts" in attempt(visitor, staff.email)


def test_counters_contain_no_email_address_of_an_account(staff: Staff) -> None:
    keys = [key for key, _ in admin_login._keys(None, staff.email)]

    assert staff.email not in "".join(keys)
    assert all(throttling.counters().read(key) == 0 for key in keys)


def test_a_redirect_after_the_sign_in_stays_on_this_host(visitor: Client, staff: Staff) -> None:
    answer = visitor.post(LOGIN, {"username": staff.email, "password": PASSWORD, "next": "https://elsewhere.test/"})

    assert "elsewhere" not in answer.headers["location"]
