"""Brute-force protection: which failures are counted together, at which count a block begins, and what lifts a block."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.core import mail
from django.db import connections

from authapi.accounts.attempts import Refusal
from authapi.accounts.brute_force import counted_address, lift_blocks
from authapi.accounts.user_blocks import blocks_of_identifier
from authapi.expiry import drop_ended
from authapi.models import LoginFailures
from events.models import Event, Mark
from identity.models import Connection, Job, Tenant, User
from identity.services.connections import update_connection
from identity.services.jobs import run_job
from identity.services.users import create_user, update_user
from tests.authapi.accounts.logging_in import WRONG, attempt, last_line, outcome, protect
from tests.factories.sign_in import PASSWORD, people, person, web_client

BEGIN = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
WRONG_CREDENTIALS, BLOCKED = Refusal.WRONG_CREDENTIALS, Refusal.TOO_MANY_ATTEMPTS


def fail(connection: Connection, times: int, identifier: str = "ada@example.test", **more: str) -> list[object]:
    return [outcome(attempt(connection, identifier, WRONG, **more)) for _ in range(times)]


def test_even_the_right_password_is_refused_after_too_many_failures(ada: User, connection: Connection) -> None:
    assert fail(connection, 10) == [WRONG_CREDENTIALS] * 10
    assert outcome(attempt(connection)) is BLOCKED
    assert outcome(attempt(connection, password=WRONG)) is BLOCKED
    assert last_line(ada.tenant_id).type == "limit_wc"
    assert [row.identifier for row in blocks_of_identifier(tenant_id=ada.tenant_id, identifier="ADA@example.test")] == ["ada@example.test"]


def test_an_unknown_name_is_blocked_like_a_known_name(ada: User, connection: Connection) -> None:
    protect(ada.tenant_id, max_attempts=2)
    assert fail(connection, 3, "nobody@example.test") == [WRONG_CREDENTIALS, WRONG_CREDENTIALS, BLOCKED]


def test_a_successful_login_before_the_threshold_resets_the_count(ada: User, connection: Connection) -> None:
    protect(ada.tenant_id, max_attempts=3)
    for _ in range(3):
        fail(connection, 2)
        assert outcome(attempt(connection)) == ada
    assert not LoginFailures.objects.of(ada.tenant_id).exists()


def test_each_ip_address_has_its_own_count_by_default(ada: User, connection: Connection) -> None:
    protect(ada.tenant_id, max_attempts=2)
    fail(connection, 2)
    assert outcome(attempt(connection, ip="192.0.2.8")) == ada
    assert outcome(attempt(connection)) is BLOCKED


def test_a_shared_count_blocks_the_account_at_every_ip_address(ada: User, connection: Connection) -> None:
    protect(ada.tenant_id, max_attempts=3, mode="count_per_identifier")
    for number in range(3):
        fail(connection, 1, ip=f"192.0.2.{number}")
    assert outcome(attempt(connection, ip="198.51.100.1")) is BLOCKED


def test_the_addresses_of_one_ipv6_network_share_a_count(ada: User, connection: Connection) -> None:
    protect(ada.tenant_id, max_attempts=2)
    fail(connection, 1, ip="2001:db8::1")
    fail(connection, 1, ip="2001:db8::2")
    assert outcome(attempt(connection, ip="2001:db8::3")) is BLOCKED
    assert outcome(attempt(connection, ip="2001:db8:0:1::3")) == ada
    assert [counted_address(ip) for ip in ("::ffff:192.0.2.1", "192.0.2.1", "fe80::1%eth0", "", "odd")] == [
        "192.0.2.1",
        "192.0.2.1",
        "fe80::/64",
        "",
        "",
    ]


def test_ip_addresses_of_the_allowlist_are_never_counted(ada: User, connection: Connection) -> None:
    protect(ada.tenant_id, max_attempts=1, allowlist=["192.0.2.0/24", "2001:db8::/32"])
    assert fail(connection, 5) == [WRONG_CREDENTIALS] * 5
    assert fail(connection, 2, ip="2001:db8::9") == [WRONG_CREDENTIALS] * 2
    assert outcome(attempt(connection)) == ada
    assert fail(connection, 2, ip="198.51.100.1") == [WRONG_CREDENTIALS, BLOCKED]


@pytest.mark.parametrize("rules", [{"enabled": False}, {"shields": []}, {"shields": ["user_notification"]}])
def test_no_account_is_blocked_when_the_tenant_has_switched_blocking_off(
    ada: User, connection: Connection, rules: dict[str, object]
) -> None:
    protect(ada.tenant_id, max_attempts=1, **rules)
    assert fail(connection, 3) == [WRONG_CREDENTIALS] * 3
    assert outcome(attempt(connection)) == ada


def test_a_connection_can_switch_its_protection_off(ada: User, connection: Connection) -> None:
    protect(ada.tenant_id, max_attempts=1)
    options = {**connection.options, "brute_force_protection": False}
    changed = update_connection(tenant_id=ada.tenant_id, connection_id=connection.pk, changes={"options": options})
    assert fail(changed, 3) == [WRONG_CREDENTIALS] * 3


def test_a_higher_threshold_lifts_the_block_and_keeps_the_count(ada: User, connection: Connection) -> None:
    protect(ada.tenant_id, max_attempts=2)
    fail(connection, 2)
    protect(ada.tenant_id, max_attempts=4)
    assert not blocks_of_identifier(tenant_id=ada.tenant_id, identifier="ada@example.test")
    assert fail(connection, 3) == [WRONG_CREDENTIALS, WRONG_CREDENTIALS, BLOCKED]


def test_a_lower_threshold_blocks_at_the_next_failure(ada: User, connection: Connection) -> None:
    fail(connection, 5)
    protect(ada.tenant_id, max_attempts=3)
    assert fail(connection, 2) == [WRONG_CREDENTIALS, BLOCKED]


def test_a_block_ends_thirty_days_after_the_failure_that_started_it(ada: User, connection: Connection) -> None:
    protect(ada.tenant_id, max_attempts=2)
    with time_machine.travel(BEGIN, tick=False) as clock:
        fail(connection, 2)
        clock.shift(timedelta(days=29, hours=23))
        assert fail(connection, 2) == [BLOCKED] * 2
        clock.shift(timedelta(hours=2))
        assert not blocks_of_identifier(tenant_id=ada.tenant_id, identifier="ada@example.test")
        assert fail(connection, 1) == [WRONG_CREDENTIALS]
        assert outcome(attempt(connection)) == ada


def test_expired_counts_are_deleted(ada: User, connection: Connection) -> None:
    with time_machine.travel(BEGIN, tick=False) as clock:
        fail(connection, 1)
        clock.shift(timedelta(days=29))
        fail(connection, 1, "grace@example.test")
        clock.shift(timedelta(days=2))
        drop_ended()
    assert [row.identifier for row in LoginFailures.objects.of(ada.tenant_id)] == ["grace@example.test"]


def test_a_new_password_lifts_every_block_of_the_user(connection: Connection) -> None:
    ada = person(connection, phone_number="+15550100")
    protect(ada.tenant_id, max_attempts=1)
    fail(connection, 1)
    fail(connection, 1, "+15550100", ip="192.0.2.9")
    update_user(tenant_id=ada.tenant_id, user_id=ada.user_id, changes={"password": "Another-Password-1"})
    assert outcome(attempt(connection, password="Another-Password-1")) == ada
    assert not LoginFailures.objects.of(ada.tenant_id).exists()


def test_an_account_created_after_failed_logins_with_its_name_is_not_blocked(tenant: Tenant, connection: Connection) -> None:
    protect(tenant.pk, max_attempts=1)
    fail(connection, 1)
    ada = create_user(tenant_id=tenant.pk, connection=connection, email="Ada@example.test", password=PASSWORD)
    assert outcome(attempt(connection)) == ada


def test_an_administrator_lifts_blocks_by_identifier_and_by_user(ada: User, connection: Connection) -> None:
    protect(ada.tenant_id, max_attempts=1)
    for named in ({"identifier": "ADA@example.test"}, {"user": ada}):
        fail(connection, 1)
        assert outcome(attempt(connection)) is BLOCKED
        assert lift_blocks(tenant_id=ada.tenant_id, **named) == 1
        assert outcome(attempt(connection)) == ada


def test_blocks_of_one_tenant_do_not_affect_another_tenant(ada: User, connection: Connection) -> None:
    from tests.factories.admin import new_tenant

    other = new_tenant()
    theirs = people(other, web_client(other)[0])
    person(theirs)
    protect(ada.tenant_id, max_attempts=1)
    protect(other.pk, max_attempts=1)
    fail(connection, 1)
    assert isinstance(outcome(attempt(theirs)), User)
    assert not lift_blocks(tenant_id=other.pk, identifier="ada@example.test")
    assert outcome(attempt(connection)) is BLOCKED


def test_a_block_does_not_change_the_user_or_the_event_stream(ada: User, connection: Connection) -> None:
    before = User.objects.of(ada.tenant_id).filter(pk=ada.pk).values().get()
    events = Event.objects.filter(tenant_id=ada.tenant_id).count()
    fail(connection, 11)
    lift_blocks(tenant_id=ada.tenant_id, user=ada)
    assert User.objects.of(ada.tenant_id).filter(pk=ada.pk).values().get() == before
    assert Event.objects.filter(tenant_id=ada.tenant_id).count() == events
    assert not Mark.objects.filter(tenant_id=ada.tenant_id).exists()


def test_a_blocked_user_gets_one_mail_and_an_unknown_name_gets_no_mail(ada: User, connection: Connection) -> None:
    protect(ada.tenant_id, max_attempts=2)
    fail(connection, 4)
    fail(connection, 4, "nobody@example.test")
    jobs = list(Job.objects.of(ada.tenant_id).filter(type=Job.Type.UNBLOCK_EMAIL))
    assert len(jobs) == 2
    for job in jobs:
        assert run_job(job.pk)
    assert [message.to for message in mail.outbox] == [["ada@example.test"]]
    assert "192.0.2.7" in mail.outbox[0].body


@pytest.mark.parametrize("rules", [{"shields": ["block"]}, {"enabled": False}])
def test_no_mail_is_sent_when_the_tenant_has_switched_notifications_off(
    ada: User, connection: Connection, rules: dict[str, object]
) -> None:
    protect(ada.tenant_id, max_attempts=1, **rules)
    fail(connection, 2)
    assert not Job.objects.of(ada.tenant_id).exists()


def test_concurrent_attempts_cannot_make_more_guesses_than_the_threshold(ada: User, connection: Connection) -> None:
    protect(ada.tenant_id, max_attempts=3)
    outcomes: list[object] = []
    start = threading.Barrier(8)

    def guess() -> None:
        try:
            start.wait(10)
            outcomes.extend(fail(connection, 2))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=guess) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(str(found) for found in outcomes) == sorted([str(WRONG_CREDENTIALS)] * 3 + [str(BLOCKED)] * 13)
    assert LoginFailures.objects.of(ada.tenant_id).get().count == 3
    assert Job.objects.of(ada.tenant_id).filter(type=Job.Type.UNBLOCK_EMAIL).count() == 1
