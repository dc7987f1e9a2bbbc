"""Suspicious IP addresses: how tenants configure the throttling, list blocked addresses and lift blocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core import mail
from django.urls import reverse

from authapi.accounts.attack_notices import send_due_notices
from authapi.accounts.attempts import Refusal
from authapi.accounts.sign_up import SignUp, SignUpRefused, sign_up
from authapi.accounts.suspicion import is_suspicious
from authapi.models import AddressBlock, SignIn
from identity.models import AuditEntry, Connection, Tenant, User
from tests.authapi.accounts.logging_in import attempt, outcome, suspect
from tests.authapi.api.conftest import api  # noqa: F401  (this fixture is used here, too)
from tests.factories.admin import browser_of, new_staff, new_tenant
from tests.management import Management

BEGIN = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
ADDRESS = "192.0.2.7"
SETTINGS, LEAKS, BLOCKS = (
    "attack-protection/suspicious-ip-throttling",
    "attack-protection/breached-password-detection",
    "anomaly/blocks/ips",
)


def fail(connection: Connection, count: int, ip: str = ADDRESS) -> list[object]:
    return [outcome(attempt(connection, f"nobody-{number}@example.test", ip=ip)) for number in range(count)]


def test_valid_settings_take_effect_and_invalid_settings_change_nothing(api: Management, ada: User, connection: Connection) -> None:  # noqa: F811
    default = api.get(SETTINGS).json
    assert default["stage"]["pre-login"] == {"max_attempts": 100, "rate": 864_000}
    changed = api.patch(SETTINGS, {"stage": {"pre-login": {"max_attempts": 2}}}).json
    assert changed == {**default, "stage": {**default["stage"], "pre-login": {"max_attempts": 2, "rate": 864_000}}}
    assert api.patch(SETTINGS, {}).json == api.get(SETTINGS).json == changed
    for body in (
        {"stage": {"pre-login": {"max_attempts": 0}}},
        {"stage": {"pre-login": {"rate": 0}}},
        {"stage": {"pre-login": {"rate": "soon"}}},
        {"stage": {"pre-logout": {"rate": 1}}},
        {"stage": None},
        {"shields": ["user_notification"]},
        {"shields": "block"},
        {"allowlist": ["nowhere"]},
        {"allowlist": [f"192.0.2.{number}" for number in range(101)]},
        {"enabled": "true"},
        {"max_attempts": 5},
    ):
        answer = api.patch(SETTINGS, body)
        assert (answer.status, answer.json.get("errorCode")) == (400, "invalid_body"), body
    assert api.get(SETTINGS).json == changed
    assert fail(connection, 3)[2] is Refusal.SUSPICIOUS_ADDRESS
    assert api.patch(SETTINGS, {"allowlist": ["192.0.2.0/24"]}).status == 200
    assert outcome(attempt(connection)) == ada


def test_breached_password_settings_have_the_upstream_format(api: Management) -> None:  # noqa: F811
    default = api.get(LEAKS).json
    assert default == {
        "enabled": False,
        "shields": [],
        "admin_notification_frequency": [],
        "method": "standard",
        "stage": {"pre-user-registration": {"shields": []}, "pre-change-password": {"shields": []}},
    }
    body: dict[str, Any] = {
        "enabled": True,
        "shields": ["block", "user_notification", "admin_notification"],
        "admin_notification_frequency": ["immediately", "monthly"],
        "stage": {"pre-change-password": {"shields": ["block"]}},
    }
    changed = api.patch(LEAKS, body).json
    assert changed == {**default, **body, "stage": {**default["stage"], **body["stage"]}}
    for odd in (
        {"stage": {"pre-change-password": {"shields": ["user_notification"]}}},
        {"stage": {"pre-login": {"shields": ["block"]}}},
        {"admin_notification_frequency": ["yearly"]},
        {"shields": ["delete"]},
        {"method": "best"},
    ):
        answer = api.patch(LEAKS, odd)
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), odd
    enhanced = api.patch(LEAKS, {"method": "enhanced"})
    assert (enhanced.status, enhanced.json["errorCode"]) == (400, "operation_not_supported")
    assert api.get(LEAKS).json == changed


def test_each_operation_requires_its_scope(tenant: Tenant) -> None:
    weak = Management(tenant, scope="read:users")
    for answer in (
        weak.get(SETTINGS),
        weak.patch(LEAKS, {"enabled": False}),
        weak.get(f"{BLOCKS}/{ADDRESS}"),
        weak.delete(f"{BLOCKS}/{ADDRESS}"),
    ):
        assert (answer.status, answer.json["errorCode"]) == (403, "insufficient_scope")


def test_only_the_tenant_of_a_block_can_list_and_lift_the_block(
    api: Management,  # noqa: F811
    ada: User,
    connection: Connection,
) -> None:
    suspect(
        ada.tenant_id,
        stage={"pre-login": {"max_attempts": 2, "rate": 60_000}, "pre-user-registration": {"max_attempts": 1, "rate": 60_000}},
    )
    assert api.get(f"{BLOCKS}/{ADDRESS}").status == 404
    fail(connection, 3)
    assert api.get(f"{BLOCKS}/{ADDRESS}").status == 200
    assert api.get(f"{BLOCKS}/192.0.2.8").status == 404
    for odd in ("nowhere", "192.0.2.0%2F24", "999.1.1.1"):
        assert (api.get(f"{BLOCKS}/{odd}").status, api.delete(f"{BLOCKS}/{odd}").status) == (400, 400)
    other = new_tenant()
    stranger = Management(other)
    assert stranger.get(f"{BLOCKS}/{ADDRESS}").status == 404
    assert stranger.delete(f"{BLOCKS}/{ADDRESS}").status == 204
    assert outcome(attempt(connection)) is Refusal.SUSPICIOUS_ADDRESS
    assert [api.delete(f"{BLOCKS}/{ADDRESS}").status for _ in range(2)] == [204, 204]
    assert api.get(f"{BLOCKS}/{ADDRESS}").status == 404
    assert outcome(attempt(connection)) == ada
    assert not AddressBlock.objects.of(ada.tenant_id).exists()


def test_an_ipv6_address_is_counted_as_its_network(api: Management, ada: User, connection: Connection) -> None:  # noqa: F811
    suspect(ada.tenant_id, stage={"pre-login": {"max_attempts": 1, "rate": 60_000}})
    fail(connection, 2, ip="2001:db8:1:2::1")
    assert api.get(f"{BLOCKS}/2001%3Adb8%3A1%3A2%3Affff%3A%3A9").status == 200
    assert AddressBlock.objects.of(ada.tenant_id).get().address == "2001:db8:1:2::/64"
    assert api.delete(f"{BLOCKS}/2001%3Adb8%3A1%3A2%3A%3A7").status == 204
    assert outcome(attempt(connection, ip="2001:db8:1:2::1")) == ada


def test_administrators_get_one_mail_about_many_ip_addresses(ada: User, connection: Connection) -> None:
    admin = new_staff(ada.tenant)
    suspect(ada.tenant_id, stage={"pre-login": {"max_attempts": 1, "rate": 60_000}})
    with time_machine.travel(BEGIN, tick=False) as clock:
        for number in range(3):
            fail(connection, 3, ip=f"203.0.113.{number}")
        send_due_notices()
        assert [message.to for message in mail.outbox] == [[admin.email]]
        body = str(mail.outbox[0].body)
        assert "3 IP addresses have used up their attempts" in body
        assert "203.0.113.2  pre-login  refused at least until 2031-05-01 12:01 UTC" in body
        # A failure one hour after the end of a block starts a new block and causes a mail. Later failures extend the new block.
        clock.shift(timedelta(minutes=70))
        fail(connection, 3, ip="203.0.113.0")
        send_due_notices()
        assert AddressBlock.objects.of(ada.tenant_id).count() == 3
        assert len(mail.outbox) == 2
        clock.shift(timedelta(minutes=30))
        fail(connection, 3, ip="203.0.113.0")
        send_due_notices()
        assert len(mail.outbox) == 2


def test_no_ip_address_is_refused_if_the_tenant_only_notifies_administrators(ada: User, connection: Connection) -> None:
    suspect(ada.tenant_id, shields=["admin_notification"], stage={"pre-user-registration": {"max_attempts": 1, "rate": 60_000}})
    for name in ("new", "newer", "newest"):
        sign_up(SignUp(connection=connection, password="Fresh-Horse-Staple-9", profile={"email": f"{name}@example.test"}, ip=ADDRESS))
    block = AddressBlock.objects.of(ada.tenant_id).get()
    assert (block.stage, block.is_refused) == ("pre-user-registration", False)
    assert not is_suspicious(ada.tenant_id, ADDRESS, "pre-user-registration")


def test_staff_can_list_a_block_and_lift_the_block_with_a_reason(ada: User, connection: Connection) -> None:
    suspect(
        ada.tenant_id,
        stage={"pre-login": {"max_attempts": 1, "rate": 60_000}, "pre-user-registration": {"max_attempts": 1, "rate": 60_000}},
    )
    fail(connection, 2)
    block = AddressBlock.objects.of(ada.tenant_id).get()
    browser = browser_of(new_staff(ada.tenant))
    assert ADDRESS in browser.get(reverse("admin:authapi_addressblock_changelist")).content.decode()
    act = reverse("admin:authapi_addressblock_action", args=(block.pk, "lift"))
    assert "This field is required" in browser.post(act, {}).content.decode()
    assert outcome(attempt(connection)) is Refusal.SUSPICIOUS_ADDRESS
    assert browser.post(act, {"reason": "It is the office."}).status_code == 302
    assert outcome(attempt(connection)) == ada
    assert AuditEntry.objects.filter(tenant_id=ada.tenant_id, reason="It is the office.").exists()
    sign_up(SignUp(connection=connection, password="Fresh-Horse-Staple-9", profile={"email": "x@example.test"}, ip=ADDRESS))
    with pytest.raises(SignUpRefused):
        sign_up(SignUp(connection=connection, password="Fresh-Horse-Staple-9", profile={"email": "y@example.test"}, ip=ADDRESS))
    assert SignIn.objects.of(ada.tenant_id).filter(type="limit_mu").exists()
