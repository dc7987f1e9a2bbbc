"""Staff and end users log in on one host, such as a loopback address. If one browser has both logins, neither login affects the other."""

from __future__ import annotations

import secrets
from typing import Any

from authapi.models import Session
from identity.hosts import forget_hosts
from identity.models import Staff
from tests.authapi.browser import Browser
from tests.authapi.login.conftest import Login


def test_staff_logins_and_user_logins_in_one_browser_do_not_affect_each_other(login: Login, settings: Any) -> None:
    settings.LOCALHOST_TENANT = login.tenant.pk
    forget_hosts()
    browser = login.browser = Browser(login.tenant, host="localhost")
    email, password = f"{secrets.token_hex(6)}@staff.example.test", "a-long-password-of-staff"
    Staff.objects.create_superuser(email, password)

    login.begin_session()
    assert browser.get("/admin/").status == 302
    entry = browser.submit(browser.get("/admin/login/"), username=email, password=password)
    assert entry.status == 302, entry.text
    assert browser.get("/admin/").status == 200
    assert "code" in login.ask(prompt="none").answer

    form = login.browser.follow(login.ask(prompt="login"))
    assert "code" in login.log_in(form).answer
    assert browser.get("/admin/").status == 200

    browser.get("/v2/logout")
    assert not Session.objects.of(login.tenant.pk).exists()
    assert browser.get("/admin/").status == 200
