"""Redeliveries in the admin: the confirmation page predicts their results. The message that follows says whether a hold makes them wait."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.contrib.messages import get_messages
from django.db import connection as database
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from events.models import EventStream
from identity.models import Connection, Job, Tenant
from identity.services.jobs import run_job
from provisioning.dead_letters.redelivery_outlook import outlook_of
from provisioning.engine.streams import create_stream
from provisioning.models import DeadLetter, Delivery
from provisioning.services.actions import set_secret
from tests.factories.actions import make_deployed_action
from tests.factories.admin import browser_of, new_staff
from tests.factories.identity import make_user
from tests.provisioning.admin.test_dead_letter_pages import bury, do, place
from tests.provisioning.engine.conftest import Recorder


@pytest.fixture(autouse=True)
def _settings(settings: Settings) -> None:
    settings.DELIVERY_RETRY_DELAYS = []
    settings.SECURE_SSL_REDIRECT = False


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


def hold(stream: EventStream) -> None:
    EventStream.objects.of(stream.tenant_id).filter(pk=stream.pk).update(held_since=timezone.now(), held_reason="Token refused.")


def said(answer: Any) -> list[tuple[str, str]]:
    return [(message.level_tag, str(message)) for message in get_messages(answer.wsgi_request)]


def select(browser: Client, letters: list[DeadLetter], **answers: str) -> Any:
    chosen = {ACTION_CHECKBOX_NAME: [letter.pk for letter in letters], "action": "redeliver_selected", **answers}
    return browser.post(reverse("admin:provisioning_deadletter_changelist"), chosen)


def test_the_message_of_a_redelivery_on_a_held_stream_says_that_it_waits(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    [letter] = bury(tenant, stream, recorder, "user:a")
    hold(stream)

    answer = browser.post(do(letter, "redeliver"), {"reason": ""})

    assert said(answer) == [("warning", "Redelivery queued. It waits, because the stream is held: Token refused.")]


def test_the_message_of_a_redelivery_on_a_delivering_stream_reports_success(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    [letter] = bury(tenant, stream, recorder, "user:a")

    answer = browser.post(do(letter, "redeliver"), {"reason": ""})

    assert said(answer) == [("success", "Redelivery queued. The next attempt starts within seconds.")]


def test_the_message_of_a_redelivery_of_selected_dead_letters_says_how_many_wait(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letters = bury(tenant, stream, recorder, "user:a", "user:b")
    hold(stream)

    answer = select(browser, letters, confirmed="yes", reason="")

    assert said(answer) == [("warning", "2 redeliveries queued. They wait, because the stream is held: Token refused.")]


def test_the_message_of_a_deployment_shows_the_held_streams_of_the_action(browser: Client, tenant: Tenant) -> None:
    action = make_deployed_action(tenant)
    bound = create_stream(
        tenant_id=tenant.pk, name="Directory", subscriptions=["user.created"], destination_type="action",
        destination={"action_id": str(action.pk)},
    )  # fmt: skip
    deploy = reverse("admin:provisioning_action_action", args=(action.pk, "deploy"))
    set_secret(tenant_id=tenant.pk, action_id=action.pk, name="NOTE", value="first")
    assert [level for level, _ in said(browser.post(deploy))] == ["success"]
    hold(bound)
    set_secret(tenant_id=tenant.pk, action_id=action.pk, name="NOTE", value="second")

    # The message of the first deployment is shown, too, because no page has shown it yet.
    assert said(browser.post(deploy))[1:] == [
        ("warning", "Action deployed. Deliveries wait, because these event streams are held: Directory. Resume them to deliver.")
    ]


def test_the_message_gives_the_disabled_stream_as_the_reason(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    [letter] = bury(tenant, stream, recorder, "user:a")
    EventStream.objects.of(tenant.pk).filter(pk=stream.pk).update(status="disabled")

    assert "because the stream is disabled" in said(browser.post(do(letter, "redeliver"), {"reason": ""}))[0][1]


def test_the_confirmation_shows_the_kinds_of_failure_and_which_events_would_be_skipped(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder, database_connection: Connection
) -> None:
    user = make_user(connection=database_connection)
    letters = bury(tenant, stream, recorder, f"user:{user.user_id}", "user:b", "user:c", "user:d")
    deletion, newer, settled, _sent = letters
    DeadLetter.objects.filter(pk=deletion.pk).update(event_type="user.deleted")
    Delivery.objects.filter(pk=newer.delivery_id).update(position=1)
    Delivery.objects.create(
        stream_id=stream.pk, tenant_id=tenant.pk, key="user:b", position=10**6, event=10**9, event_id="evt_newer",
        event_type="user.updated", state="delivered", is_written=True,
    )  # fmt: skip
    DeadLetter.objects.filter(pk=settled.pk).update(state="resolved")

    page = select(browser, letters).content.decode()

    assert "1 event would be sent." in page
    assert "1 deletion would not be sent: its user exists again." in page
    assert "1 event would end as superseded: a newer event of the same user was written." in page
    assert "1 selected dead letter is not included: it is resolved, or its event is already being redelivered." in page
    assert "400: refused" in page


def test_the_confirmation_says_what_force_would_change(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder, database_connection: Connection
) -> None:
    user = make_user(connection=database_connection)
    letters = bury(tenant, stream, recorder, f"user:{user.user_id}", "user:b")
    assert "By force" not in select(browser, letters).content.decode()
    DeadLetter.objects.filter(pk=letters[0].pk).update(event_type="user.deleted")

    for page in (select(browser, letters), browser.get(place("redelivery"), {"stream_id": stream.pk})):
        assert "By force, this event would be sent as well." in page.content.decode()
        shown = {row[0].text: (row[2].text, row[3].text) for row in page.context["panels"][0].rows}
        assert shown["user.deleted"] == ("1", "0")


def test_the_confirmation_says_that_redeliveries_on_a_held_stream_wait(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letters = bury(tenant, stream, recorder, "user:a", "user:b")
    assert "They wait" not in select(browser, letters).content.decode()
    hold(stream)

    assert "They wait, because the stream is held: Token refused." in select(browser, letters).content.decode()


def test_the_page_for_all_listed_dead_letters_shows_which_events_would_be_sent(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder, database_connection: Connection
) -> None:
    user = make_user(connection=database_connection)
    [deletion, _other] = bury(tenant, stream, recorder, f"user:{user.user_id}", "user:b")
    DeadLetter.objects.filter(pk=deletion.pk).update(event_type="user.deleted")

    page = browser.get(place("redelivery"), {"stream_id": stream.pk}).content.decode()

    assert "1 event would be sent." in page
    assert "1 deletion would not be sent: its user exists again." in page
    assert "400: refused" in page


def test_the_number_of_queries_of_the_confirmation_does_not_grow_with_the_dead_letters(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    bury(tenant, stream, recorder, *(f"user:{number}" for number in range(6)))
    DeadLetter.objects.filter(stream_id=stream.pk).update(event_type="user.deleted")
    asked = []
    for count in (1, 6):
        with CaptureQueriesContext(database) as queries:
            outlook_of(DeadLetter.objects.filter(stream_id=stream.pk)[:count])
        asked.append(len(queries))

    assert asked[0] == asked[1] <= 3


def test_the_page_of_a_redelivery_job_says_that_its_events_wait_for_the_hold(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    bury(tenant, stream, recorder, "user:a", "user:b")
    hold(stream)
    browser.post(f"{place('redelivery')}?stream_id={stream.pk}", {"rate_per_second": "50", "reason": "Fixed", "start": "x"})
    job = Job.objects.of(tenant.pk).get()
    run_job(job.pk)

    page = reverse("admin:identity_job_change", args=(quote(job.pk),))
    assert "Queued again. They wait, because the stream is held: Token refused." in browser.get(page).content.decode()
    EventStream.objects.of(tenant.pk).filter(pk=stream.pk).update(held_since=None)
    assert "They wait" not in browser.get(page).content.decode()
