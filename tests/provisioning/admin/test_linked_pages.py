"""The pages of a dead letter, its delivery, its event and its user link to each other, and each page says in words what happened."""

from __future__ import annotations

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from events.log.numbering import number_tenant
from events.models import Event, EventStream
from identity.models import Connection, Tenant, User
from provisioning.engine import dispatch
from provisioning.models import DeadLetter, Delivery
from provisioning.runs.failures import DataFailure
from tests.factories.admin import browser_of, new_staff, take_from_administrators
from tests.factories.identity import make_user
from tests.provisioning.admin.test_dead_letter_pages import deliver_all
from tests.provisioning.engine.conftest import Recorder


@pytest.fixture(autouse=True)
def _settings(settings: Settings) -> None:
    settings.DELIVERY_RETRY_DELAYS = []
    settings.SECURE_SSL_REDIRECT = False


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


@pytest.fixture
def user(tenant: Tenant, stream: EventStream, recorder: Recorder, database_connection: Connection) -> User:
    """Return a user whose creation the destination refused, so that a delivery, an event and a dead letter exist."""
    number_tenant(tenant.pk)
    EventStream.objects.of(tenant.pk).filter(pk=stream.pk).update(subscriptions=["user.created"])
    user = make_user(connection=database_connection, email="ada@example.test")
    recorder.answers.setdefault(f"user:{user.user_id}", []).append(DataFailure("userName is taken", status=409))
    number_tenant(tenant.pk)
    dispatch.dispatch_tenant(tenant.pk)
    deliver_all(stream)
    return user


def page(model: str, key: int | str) -> str:
    return reverse(f"admin:{model}_change", args=(quote(key),))


def pages_of(user: User) -> dict[str, str]:
    letter = DeadLetter.objects.get(key=f"user:{user.user_id}")
    event = Event.objects.get(event_id=letter.event_id)
    return {
        "letter": page("provisioning_deadletter", letter.pk),
        "delivery": page("provisioning_delivery", letter.delivery_id),
        "entry": page("events_logentry", event.pk),
        "event": page("events_event", event.pk),
        "user": page("identity_user", user.pk),
        "stream": page("events_eventstream", letter.stream_id),
    }


@pytest.mark.parametrize(
    ("start", "others"),
    [
        ("letter", ("delivery", "entry", "user", "stream")),
        ("delivery", ("letter", "entry", "user", "stream")),
        ("entry", ("letter", "delivery", "user", "stream")),
        ("event", ("letter", "delivery", "user", "stream", "entry")),
        ("events of the user", ("letter", "delivery", "entry", "stream")),
        ("timeline of the user", ("delivery", "entry", "stream")),
        ("deliveries of the stream", ("delivery", "user")),
    ],
)
def test_each_page_links_to_the_other_pages(browser: Client, user: User, start: str, others: tuple[str, ...]) -> None:
    places = pages_of(user)
    places["events of the user"] = f"{places['user']}?tab=events-and-deliveries"
    places["timeline of the user"] = reverse("admin:identity_user_timeline", args=(quote(user.pk),))
    places["deliveries of the stream"] = f"{places['stream']}?tab=deliveries"

    shown = browser.get(places[start]).content.decode()

    for other in others:
        assert f'href="{places[other]}"' in shown, other


def test_the_headings_name_the_event_and_its_user(browser: Client, user: User) -> None:
    places = pages_of(user)

    for name in ("letter", "delivery", "entry"):
        assert "<h1>user.<wbr>created for ada@example.test</h1>" in browser.get(places[name]).content.decode(), name


def test_the_page_of_a_dead_letter_explains_the_failure_and_the_fix(browser: Client, user: User) -> None:
    verdict = browser.get(pages_of(user)["letter"]).context["verdict"]

    assert verdict.what == "userName is taken"
    assert "the destination refuses the data of this event (HTTP status 409). 1 attempt." in verdict.why
    assert verdict.advice.startswith("Compare the sent resource with the response")


def test_the_page_of_a_dead_letter_says_that_a_redelivery_waits_for_the_hold(browser: Client, user: User, stream: EventStream) -> None:
    held = {"held_since": timezone.now(), "held_reason": "Token refused."}
    EventStream.objects.of(stream.tenant_id).filter(pk=stream.pk).update(**held)

    verdict = browser.get(pages_of(user)["letter"]).context["verdict"]

    assert verdict.advice.endswith("A redelivery waits, because the stream is held: Token refused.")


def test_the_page_of_a_waiting_delivery_names_the_hold_of_its_stream(browser: Client, user: User, stream: EventStream) -> None:
    delivery = Delivery.objects.get(key=f"user:{user.user_id}")
    browser.post(reverse("admin:provisioning_deadletter_action", args=(delivery.dead_letter.pk, "redeliver")), {"reason": ""})
    held = {"held_since": timezone.now(), "held_reason": "Token refused."}
    EventStream.objects.of(stream.tenant_id).filter(pk=stream.pk).update(**held)

    verdict = browser.get(pages_of(user)["delivery"]).context["verdict"]

    assert verdict.what == "Waiting. Waits while the stream is held: Token refused."
    assert verdict.advice.startswith("Fix the cause of the hold, then resume")


@pytest.mark.parametrize(
    ("detail", "why"),
    [({"scim_id": "2819"}, "The account was created at the destination."), ({}, "Created.")],
    ids=["scim account", "other action"],
)
def test_the_page_of_a_successful_delivery_says_what_happened_at_the_destination(
    browser: Client, user: User, detail: dict[str, str], why: str
) -> None:
    Delivery.objects.filter(key=f"user:{user.user_id}").update(state=Delivery.State.DELIVERED, reason="created", detail=detail)

    verdict = browser.get(pages_of(user)["delivery"]).context["verdict"]

    assert (verdict.what, verdict.why_label, verdict.why) == ("Delivered.", "Result", why)


def test_a_list_of_deliveries_says_in_a_sentence_what_happened(browser: Client, user: User) -> None:
    said = {"state": Delivery.State.DELIVERED, "reason": "created-from-update", "detail": {"scim_id": "2819"}, "error_message": ""}
    Delivery.objects.filter(key=f"user:{user.user_id}").update(**said)

    page = browser.get(reverse("admin:provisioning_delivery_changelist")).content.decode()

    assert "The destination had no account of the user, so the account was created." in page
    assert "created-from-update" not in page


def test_staff_without_the_permission_see_the_id_of_the_user_without_a_link(
    browser: Client, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_from_administrators(monkeypatch, "identity.view_user", "provisioning.view_deadletter_bodies")
    places = pages_of(user)

    shown = browser.get(places["letter"]).content.decode()

    assert "ada@example.test" not in shown
    assert f'href="{places["user"]}"' not in shown
    assert f"<h1>user.<wbr>created for {user.user_id}</h1>" in shown


def test_staff_without_the_permission_see_the_name_of_the_stream_without_a_link(
    browser: Client, user: User, stream: EventStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_from_administrators(monkeypatch, "events.view_eventstream", "events.change_eventstream")
    EventStream.objects.of(user.tenant_id).filter(pk=stream.pk).update(name="Users to the directory")
    places = pages_of(user)

    for start in ("entry", "delivery", "letter"):
        shown = browser.get(places[start]).content.decode().partition('id="content"')[2]
        assert "Users to the directory" in shown, start
        assert f'href="{places["stream"]}"' not in shown, start


@pytest.mark.parametrize(
    ("start", "other", "permission"),
    [
        ("letter", "entry", "events.{}_logentry"),
        ("letter", "delivery", "provisioning.{}_delivery"),
        ("delivery", "letter", "provisioning.{}_deadletter"),
    ],
)
def test_a_page_does_not_lead_to_pages_that_the_account_may_not_see(
    browser: Client, user: User, monkeypatch: pytest.MonkeyPatch, start: str, other: str, permission: str
) -> None:
    take_from_administrators(monkeypatch, permission.format("view"), permission.format("change"))
    places = pages_of(user)

    shown = browser.get(places[start]).content.decode().partition('id="content"')[2]

    assert f'href="{places[other]}"' not in shown
    assert browser.get(places[other]).status_code == 403


def test_a_deleted_stream_keeps_its_id_and_is_marked_as_deleted(browser: Client, user: User, stream: EventStream) -> None:
    places = pages_of(user)
    Delivery.objects.filter(stream_id=stream.pk).update(stream_id="est_gone")
    DeadLetter.objects.filter(stream_id=stream.pk).update(stream_id="est_gone")

    for start in ("entry", "event"):
        assert "est_gone (deleted)" in browser.get(places[start]).content.decode()
    assert "est_gone (deleted)" in browser.get(reverse("admin:provisioning_delivery_changelist")).content.decode()
    assert "est_gone (deleted)" in browser.get(f"{places['user']}?tab=events-and-deliveries").content.decode()
