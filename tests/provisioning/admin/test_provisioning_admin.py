"""The pages of dead letters, actions and event streams in the admin."""

from __future__ import annotations

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from events.models import EventStream
from identity.models import Staff, Tenant
from provisioning.actions.secrets import open_secrets
from provisioning.engine import breaker, delivering, dispatch
from provisioning.models import Action, Attempt, DeadLetter, Delivery, Lane
from provisioning.runs.failures import DataFailure
from tests.factories.actions import make_deployed_action
from tests.factories.admin import browser_of
from tests.provisioning.engine.conftest import Recorder
from tests.provisioning.engine.logs import append_events, make_stream

TOKEN = "very-secret-token-0123456789"


@pytest.fixture(autouse=True)
def _one_attempt(settings: Settings) -> None:
    settings.DELIVERY_RETRY_DELAYS = []
    settings.SECURE_SSL_REDIRECT = False


@pytest.fixture
def staff(tenant: Tenant) -> Staff:
    return Staff.objects.create_user(f"admin@{tenant.pk}.test", "long-enough-password", tenant=tenant)


@pytest.fixture
def browser(staff: Staff) -> Client:
    return _signed_in(staff)


@pytest.fixture
def letter(tenant: Tenant, stream: EventStream, recorder: Recorder) -> DeadLetter:
    return _dead_letter(tenant, stream, recorder)


def _signed_in(staff: Staff) -> Client:
    return browser_of(staff)


def _dead_letter(tenant: Tenant, stream: EventStream, recorder: Recorder, key: str = "user:database|a") -> DeadLetter:
    error = DataFailure("<b>userName</b> is taken", status=409, scim_type="uniqueness")
    error.exchanges = [{"verb": "POST", "path": "/Users", "request_body": "<script>alert(1)</script>", "status": 409}]
    recorder.answers[key] = [error]
    append_events(tenant, [key])
    dispatch.dispatch_tenant(tenant.pk)
    delivering.deliver_lane(stream.pk, key)
    return DeadLetter.objects.get(stream_id=stream.pk, key=key)


def _list(name: str) -> str:
    return reverse(f"admin:provisioning_{name}_changelist")


def _page(name: str, key: object) -> str:
    return reverse(f"admin:provisioning_{name}_change", args=(key,))


def test_a_dead_letter_is_listed_with_its_reason_and_a_button(browser: Client, letter: DeadLetter) -> None:
    page = browser.get(_list("deadletter")).content.decode()

    assert "&lt;b&gt;userName&lt;/b&gt; is taken" in page
    assert "<b>userName</b>" not in page
    assert reverse("admin:provisioning_deadletter_action", args=(quote(letter.pk), "redeliver")) in page


def test_the_button_in_the_list_redelivers_only_with_post(browser: Client, letter: DeadLetter) -> None:
    place = reverse("admin:provisioning_deadletter_action", args=(quote(letter.pk), "redeliver")) + "?list"

    assert "with a new series of attempts" in browser.get(place).content.decode()
    assert DeadLetter.objects.get(pk=letter.pk).state == "open"
    answer = browser.post(place)

    assert (answer.status_code, answer.headers["location"]) == (302, _list("deadletter"))
    again = DeadLetter.objects.get(pk=letter.pk)
    assert (again.state, again.redelivery_actor) == ("redelivered", f"admin@{letter.tenant_id}.test")
    assert Lane.objects.filter(stream_id=letter.stream_id).exists()


def test_selected_dead_letters_are_redelivered_after_a_confirmation_that_names_them(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letters = [_dead_letter(tenant, stream, recorder, f"user:{number}") for number in range(3)]
    chosen = {"action": "redeliver_selected", "_selected_action": [letter.pk for letter in letters[:2]]}

    asked = browser.post(_list("deadletter"), chosen).content.decode()
    assert "Redeliver 2 dead letters?" in asked
    assert "user:0" in asked
    assert "user:2" not in asked
    browser.post(_list("deadletter"), {**chosen, "confirmed": "yes", "reason": "widened", "force": "on"})

    states = DeadLetter.objects.filter(stream_id=stream.pk).order_by("pk").values_list("state", "redelivery_reason")
    assert list(states) == [("redelivered", "widened"), ("redelivered", "widened"), ("open", "")]
    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", "is_forced")) == {("todo", True), ("dead", False)}


def test_the_page_of_a_dead_letter_escapes_the_event_and_the_exchanges(browser: Client, letter: DeadLetter) -> None:
    page = browser.get(_page("deadletter", letter.pk)).content.decode()

    assert letter.event_id in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert(1)" not in page
    assert _page("attempt", Attempt.objects.get(delivery_id=letter.delivery_id).pk) in page


@pytest.mark.parametrize("name", ["delivery", "attempt", "deadletter", "lane", "breaker", "action", "actionsecret"])
def test_rows_of_another_tenant_are_not_found(name: str, browser: Client, tenant: Tenant, recorder: Recorder) -> None:
    other = Tenant(id=f"{tenant.pk}-b", name="other")
    other.save()
    stranger = make_stream(other)
    action = Action(tenant=other, name="foreign-action", template="scim-user-provisioning")
    action.save()
    breaker.hold_stream(stream_id=stranger.pk, tenant_id=other.pk, reason="x")

    page = browser.get(_list(name)).content.decode()

    assert stranger.pk not in page
    assert "foreign-action" not in page
    if name == "action":
        assert browser.get(_page("action", action.pk)).status_code == 404


def test_rows_written_by_workers_are_read_only(browser: Client, letter: DeadLetter) -> None:
    for name, key in (("delivery", letter.delivery_id), ("deadletter", letter.pk)):
        assert browser.get(_page(name, key)).status_code == 200
        assert browser.post(_page(name, key), {"state": "delivered"}).status_code == 403
        assert browser.get(reverse(f"admin:provisioning_{name}_add")).status_code == 403
        assert browser.post(reverse(f"admin:provisioning_{name}_delete", args=(key,)), {"post": "yes"}).status_code == 403


def test_secrets_of_an_action_can_be_written_and_not_read(browser: Client, tenant: Tenant) -> None:
    values = {"name": "to scim", "template": "scim-user-provisioning", "SCIM_BASE_URL": "http://127.0.0.1:9/v2", "SCIM_BEARER_TOKEN": TOKEN}
    answer = browser.post(reverse("admin:provisioning_action_add"), values)
    assert answer.status_code == 302, answer.content.decode()
    action = Action.objects.of(tenant.pk).get(name="to scim")
    assert open_secrets(action)["SCIM_BEARER_TOKEN"] == TOKEN

    page = browser.get(_page("action", action.pk)).content.decode()
    assert TOKEN not in page
    assert "Set: SCIM_BASE_URL, SCIM_BEARER_TOKEN." in page
    kept = {"name": "to scim", "SCIM_TIMEOUT_MS": "700", "update_mode": "put"}
    assert browser.post(_page("action", action.pk), kept).status_code == 302

    secrets = open_secrets(Action.objects.of(tenant.pk).get(pk=action.pk))
    assert (secrets["SCIM_BEARER_TOKEN"], secrets["SCIM_TIMEOUT_MS"]) == (TOKEN, "700")


def test_an_invalid_secret_is_refused_with_an_explanation(browser: Client) -> None:
    values = {"name": "odd", "template": "scim-user-provisioning", "SCIM_TIMEOUT_MS": "soon"}

    answer = browser.post(reverse("admin:provisioning_action_add"), values)

    assert answer.status_code == 200
    assert "SCIM_TIMEOUT_MS" in answer.content.decode()


def test_a_stream_can_be_created_then_disabled_and_enabled(browser: Client, tenant: Tenant) -> None:
    action = make_deployed_action(tenant)

    values = {"name": "users", "subscriptions": ["user.created", "user.deleted"], "destination_type": "action", "action": str(action.pk)}
    answer = browser.post(reverse("admin:events_eventstream_add"), values)
    assert answer.status_code == 302, answer.content.decode()
    stream = EventStream.objects.of(tenant.pk).get(name="users")
    assert stream.destination == {"action_id": str(action.pk)}
    assert sorted(stream.subscriptions) == ["user.created", "user.deleted"]

    for name, status in (("disable", "disabled"), ("enable", "enabled")):
        place = reverse("admin:events_eventstream_action", args=(quote(stream.pk), name))
        assert browser.get(place).status_code == 200
        browser.post(place)
        stream.refresh_from_db()
        assert stream.status == status
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="secret missing")
    assert "secret missing" in browser.get(reverse("admin:events_eventstream_change", args=(quote(stream.pk),))).content.decode()
    browser.post(reverse("admin:events_eventstream_action", args=(quote(stream.pk), "resume")))
    stream.refresh_from_db()
    assert stream.held_since is None


def test_an_operator_sees_the_streams_of_every_tenant_and_the_sweeper(tenant: Tenant, letter: DeadLetter) -> None:
    operator = Staff.objects.create_superuser(f"root@{tenant.pk}.test", "long-enough-password")
    browser = _signed_in(operator)

    assert letter.tenant_id in browser.get(_list("deadletter")).content.decode()
    assert browser.get(_list("sweeper")).status_code == 200
