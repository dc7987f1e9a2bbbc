"""Alerts. Even with several sweepers, one alert is raised for each stream, kind and period. It is sent once, without personal data."""

from __future__ import annotations

import json
import threading
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from events.models import EventStream
from identity.models import Staff, Tenant
from provisioning.dead_letters import triage
from provisioning.engine import alert_sending, alerts, breaker, delivering, dispatch, retention
from provisioning.models import Alert, DeadLetter
from provisioning.runs.failures import DataFailure
from provisioning.webhooks.signature import signature
from tests.factories.admin import new_staff, new_tenant
from tests.factories.scim import misbehaving_server, reply, sequence
from tests.provisioning.engine.conftest import Recorder
from tests.provisioning.engine.logs import append_events, make_stream

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture(autouse=True)
def _settings(settings: Settings) -> None:
    settings.DELIVERY_RETRY_DELAYS = []
    settings.DEAD_LETTER_ALERT_FIRST = settings.DEAD_LETTER_ALERT_HELD = False
    settings.DEAD_LETTER_ALERT_OPEN = 0
    settings.DEAD_LETTER_ALERT_AGE_SECONDS = 0.0
    settings.MAIL_IS_CONFIGURED = True
    settings.ALERT_WEBHOOK_URL = ""


def bury(tenant: Tenant, stream: EventStream, recorder: Recorder, key: str, text: str = "refused") -> DeadLetter:
    recorder.answers.setdefault(key, []).append(DataFailure(text, status=409, scim_type="uniqueness"))
    (event,) = append_events(tenant, [key])
    dispatch.dispatch_tenant(tenant.pk)
    delivering.deliver_lane(stream.pk, key)
    return DeadLetter.objects.get(stream_id=stream.pk, event_id=event.event_id)


def raised(stream: EventStream) -> list[Alert]:
    alerts.raise_alerts()
    return list(Alert.objects.filter(stream_id=stream.pk).order_by("pk"))


def age(stream: EventStream, **by: float) -> None:
    earlier = timezone.now() - timedelta(**by)
    DeadLetter.objects.filter(stream_id=stream.pk).update(created_at=earlier)


def test_no_alert_is_raised_if_none_is_enabled(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    bury(tenant, stream, recorder, "user:a")
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="x")
    assert raised(stream) == []


def test_the_first_dead_letter_of_each_kind_of_failure_raises_one_alert(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings
) -> None:
    settings.DEAD_LETTER_ALERT_FIRST = True
    letters = [
        bury(tenant, stream, recorder, "user:a"),
        bury(tenant, stream, recorder, "user:b"),
        bury(tenant, stream, recorder, "user:c", "x"),
    ]
    told = raised(stream)
    assert {(alert.kind, alert.fingerprint) for alert in told} == {
        ("new_failure", letters[0].fingerprint),
        ("new_failure", letters[2].fingerprint),
    }
    assert {alert.facts["count"] for alert in told} == {1, 2}
    assert len(raised(stream)) == 2
    bury(tenant, stream, recorder, "user:d")
    assert len(raised(stream)) == 2


def test_an_old_or_ignored_kind_of_failure_raises_no_alert(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings
) -> None:
    settings.DEAD_LETTER_ALERT_FIRST = True
    letter = bury(tenant, stream, recorder, "user:a")
    age(stream, days=3)
    bury(tenant, stream, recorder, "user:b")
    assert raised(stream) == []
    other = bury(tenant, stream, recorder, "user:c", "another")
    for kind in (letter, other):
        values = {"tenant_id": tenant.pk, "stream_id": stream.pk, "fingerprint": kind.fingerprint}
        triage.ignore_kind(**values, until=timezone.now() + timedelta(days=1), reason="why", actor="x")
    assert raised(stream) == []


def test_the_number_of_alerts_about_new_kinds_of_failure_is_limited(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings
) -> None:
    settings.DEAD_LETTER_ALERT_FIRST = True
    for number in range(7):
        bury(tenant, stream, recorder, f"user:{number}", "kind " + "abcdefg"[number])
    assert (len(raised(stream)), len(raised(stream))) == (5, 5)


def test_many_open_dead_letters_or_an_old_open_dead_letter_raise_alerts(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings
) -> None:
    settings.DEAD_LETTER_ALERT_OPEN, settings.DEAD_LETTER_ALERT_AGE_SECONDS = 2, 3600.0
    letters = [bury(tenant, stream, recorder, "user:a")]
    assert raised(stream) == []
    letters.append(bury(tenant, stream, recorder, "user:b"))
    assert [(alert.kind, alert.facts) for alert in raised(stream)] == [("many_open", {"count": 2, "limit": 2})]
    age(stream, hours=2)
    assert [alert.kind for alert in raised(stream)] == ["many_open", "old_open"]


def test_acknowledged_dead_letters_raise_no_alert(tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings) -> None:
    settings.DEAD_LETTER_ALERT_OPEN, settings.DEAD_LETTER_ALERT_AGE_SECONDS = 1, 1.0
    letter = bury(tenant, stream, recorder, "user:a")
    triage.decide(tenant_id=tenant.pk, letter_ids=[letter.pk], state="acknowledged", reason="why", actor="x")
    age(stream, hours=2)
    assert raised(stream) == []


def test_a_hold_raises_another_alert_after_a_period(tenant: Tenant, stream: EventStream, settings: Settings) -> None:
    settings.DEAD_LETTER_ALERT_HELD = True
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="token very-secret expired")
    (alert,) = raised(stream)
    assert (alert.kind, "very-secret" in json.dumps(alert.facts)) == ("held", False)
    day = timedelta(seconds=settings.DEAD_LETTER_ALERT_PERIOD_SECONDS)
    # The last alert belongs to an earlier period, but was raised less than one period ago.
    Alert.objects.filter(pk=alert.pk).update(period=alert.period - day)
    assert len(raised(stream)) == 1
    Alert.objects.filter(pk=alert.pk).update(period=alert.period - 2 * day, created_at=alert.created_at - 2 * day)
    assert len(raised(stream)) == 2


def test_two_concurrent_sweepers_raise_one_alert(tenant: Tenant, stream: EventStream, settings: Settings) -> None:
    settings.DEAD_LETTER_ALERT_HELD = True
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="x")
    together = threading.Barrier(4)

    def sweep() -> None:
        together.wait(10)
        alerts.raise_alerts()
        connection.close()

    threads = [threading.Thread(target=sweep) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert Alert.objects.filter(stream_id=stream.pk).count() == 1


def held(tenant: Tenant, stream: EventStream, settings: Settings) -> Alert:
    settings.DEAD_LETTER_ALERT_HELD = True
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="secret-of-the-server")
    (alert,) = raised(stream)
    return alert


def test_active_admins_of_the_tenant_get_one_mail_about_an_alert(tenant: Tenant, stream: EventStream, settings: Settings) -> None:
    admin, gone, stranger = new_staff(tenant), new_staff(tenant), new_staff(new_tenant("other"))
    Staff.objects.filter(pk=gone.pk).update(is_active=False)
    alert = held(tenant, stream, settings)
    assert [alert_sending.send_alert(alert.pk), alert_sending.send_alert(alert.pk)] == [True, False]
    (message,) = mail.outbox
    assert (message.to, message.subject) == ([admin.email], f"The stream is held: {stream.pk}")
    assert f"/admin/events/eventstream/{stream.pk}/change/" in str(message.body)
    assert "secret-of-the-server" not in str(message.body)
    assert {gone.email, stranger.email}.isdisjoint(message.to)
    alert.refresh_from_db()
    assert (alert.mailed_to, alert.problem) == (1, "")


def test_a_crash_while_sending_loses_the_message_and_never_repeats_it(
    tenant: Tenant, stream: EventStream, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_staff(tenant)
    alert = held(tenant, stream, settings)

    def die(*_: object) -> list[str]:
        raise SystemExit

    monkeypatch.setattr(alert_sending, "_posted", die)
    with pytest.raises(SystemExit):
        alert_sending.send_alert(alert.pk)
    monkeypatch.undo()
    assert not alert_sending.send_alert(alert.pk)
    assert alert.pk not in alerts.raise_alerts()
    assert len(mail.outbox) == 1


def test_the_webhook_gets_a_signed_post_request_without_secrets(tenant: Tenant, stream: EventStream, settings: Settings) -> None:
    with misbehaving_server(sequence(reply(204))) as server:
        settings.ALERT_WEBHOOK_URL, settings.ALERT_WEBHOOK_SECRET = f"http://127.0.0.1:{server.port}/alerts?key=x", SECRET
        alert = held(tenant, stream, settings)
        assert alert_sending.send_alert(alert.pk)
    (request,) = server.received
    told = json.loads(request.body)
    assert (told["data"]["tenant"], told["data"]["kind"], told["data"]["event_stream_id"]) == (tenant.pk, "held", stream.pk)
    assert "secret-of-the-server" not in request.body.decode()
    message_id, timestamp = request.headers["webhook-id"], int(request.headers["webhook-timestamp"])
    assert message_id == f"alert_{alert.pk}"
    assert request.headers["webhook-signature"] == signature(SECRET, message_id=message_id, timestamp=timestamp, body=request.body)
    alert.refresh_from_db()
    assert alert.posted_at is not None


def test_a_failure_of_the_webhook_is_stored_with_the_alert(tenant: Tenant, stream: EventStream, settings: Settings) -> None:
    with misbehaving_server(sequence(reply(500))) as server:
        settings.ALERT_WEBHOOK_URL = f"http://127.0.0.1:{server.port}/alerts?key=in-the-query"
        alert = held(tenant, stream, settings)
        alert_sending.send_alert(alert.pk)
    alert.refresh_from_db()
    assert (alert.posted_at, alert.problem) == (None, "the webhook on 127.0.0.1 answered 500")


def test_old_alerts_and_alerts_of_deleted_streams_are_deleted(tenant: Tenant, stream: EventStream, settings: Settings) -> None:
    alert = held(tenant, stream, settings)
    retention.prune()
    assert Alert.objects.filter(pk=alert.pk).exists()
    Alert.objects.filter(pk=alert.pk).update(created_at=timezone.now() - timedelta(days=90))
    retention.prune()
    assert not Alert.objects.filter(pk=alert.pk).exists()


def test_streams_of_an_inactive_tenant_raise_no_alert(stream: EventStream, settings: Settings) -> None:
    settings.DEAD_LETTER_ALERT_HELD = True
    other = new_tenant("asleep")
    Tenant.objects.filter(pk=other.pk).update(status=Tenant.Status.SUSPENDED)
    strange = make_stream(other)
    breaker.hold_stream(stream_id=strange.pk, tenant_id=other.pk, reason="x")
    assert raised(strange) == []


def settle(stream: EventStream, number: int, reason: str) -> None:
    """Add `number` deliveries of today that have ended with this reason."""
    state = "skipped" if reason.startswith("no user") else "delivered"
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO provisioning_delivery (stream_id, tenant_id, key, position, event, event_id, event_type, state, is_written,
                attempts, series_attempts, redeliveries, is_forced, reason, detail, error_class, error_scim_type, error_message,
                error_fingerprint)
            SELECT %(stream)s, %(tenant)s, 'user:' || n, n, (SELECT coalesce(max(event), 0) FROM provisioning_delivery) + n, 'evt_' || n,
                'user.updated', %(state)s, false, 1, 1, 0, false, %(reason)s, '{}', '', '', '', ''
            FROM generate_series(1, %(number)s) n
            """,
            {"stream": stream.pk, "tenant": stream.tenant_id, "state": state, "reason": reason, "number": number},
        )


@pytest.mark.parametrize(("missed", "found", "is_raised"), [(50_100, 0, True), (12_000, 40_000, True), (10_000, 45_000, False)])
def test_an_alert_about_users_not_found_is_raised_by_percentage_even_with_many_events(
    tenant: Tenant, stream: EventStream, settings: Settings, missed: int, found: int, is_raised: bool
) -> None:
    settings.NOT_FOUND_ALERT_PERCENT, settings.NOT_FOUND_ALERT_USERS = 20, 10
    settle(stream, missed, "no user to update")
    settle(stream, found, "updated")
    told = [(alert.facts["count"], alert.facts["settled"]) for alert in raised(stream)]
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM provisioning_delivery WHERE stream_id = %s", [stream.pk])
    assert told == ([(missed, missed + found)] if is_raised else [])
