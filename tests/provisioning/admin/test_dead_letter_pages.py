"""The pages of dead letters in the admin: permissions, filters, kinds of failure, decisions, jobs, exports and audit entries."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from events.models import EventStream
from identity.models import AuditEntry, Job, Staff, Tenant
from identity.services.jobs import run_job
from provisioning.admin.rights import Right
from provisioning.dead_letters import redelivery, triage
from provisioning.dead_letters.failure_kinds import failure_kinds
from provisioning.engine import breaker, delivering, dispatch, lanes
from provisioning.models import Attempt, Breaker, DeadLetter, Delivery, IgnoredKind, Lane
from provisioning.runs.failures import DataFailure
from tests.factories.admin import browser_of, new_staff, new_tenant, take_from_administrators
from tests.provisioning.engine.conftest import Recorder
from tests.provisioning.engine.logs import append_events, make_stream

EXCHANGES = [
    {
        "verb": "GET",
        "path": "/Users?filter=externalId",
        "request_headers": {"Authorization": "***"},
        "request_body": "",
        "status": 200,
        "response_headers": {"Content-Type": "application/scim+json"},
        "response_body": json.dumps({"Resources": [{"id": "7", "displayName": "As it was"}]}),
        "failure": "",
        "duration_ms": 12.4,
    },
    {
        "verb": "PUT",
        "path": "/Users/7",
        "request_headers": {},
        "request_body": json.dumps({"displayName": "As it should be"}),
        "status": 400,
        "response_headers": {},
        "response_body": "<b>no</b>",
        "failure": "",
        "duration_ms": 30.0,
    },
]


@pytest.fixture(autouse=True)
def _settings(settings: Settings) -> None:
    settings.DELIVERY_RETRY_DELAYS = []
    settings.SECURE_SSL_REDIRECT = False


@pytest.fixture
def staff(tenant: Tenant) -> Staff:
    return new_staff(tenant)


@pytest.fixture
def browser(staff: Staff) -> Client:
    return browser_of(staff)


@pytest.fixture
def lacks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that removes permissions from the role of the account."""

    def take(*rights: Right) -> None:
        take_from_administrators(monkeypatch, *(right.value for right in rights))

    return take


def bury(tenant: Tenant, stream: EventStream, recorder: Recorder, *keys: str, text: str = "refused", status: int = 400) -> list[DeadLetter]:
    for key in keys:
        error = DataFailure(text, status=status)
        error.exchanges = EXCHANGES
        recorder.answers.setdefault(key, []).append(error)
    events = append_events(tenant, list(keys))
    dispatch.dispatch_tenant(tenant.pk)
    deliver_all(stream)
    by_id = {letter.event_id: letter for letter in DeadLetter.objects.filter(stream_id=stream.pk)}
    return [by_id[event.event_id] for event in events]


def deliver_all(stream: EventStream) -> None:
    claim = lanes.claim_oldest(stream.pk)
    while claim is not None:
        claim = delivering.deliver_claim(claim, delivering.Turn()).next or lanes.claim_oldest(stream.pk)


def place(name: str, *args: Any) -> str:
    return reverse(f"admin:provisioning_deadletter_{name}", args=args)


def do(letter: DeadLetter, name: str) -> str:
    return place("action", letter.pk, name)


def content(answer: Any) -> str:
    return b"".join(answer.streaming_content).decode() if answer.streaming else answer.content.decode()


def last_note(staff: Staff) -> AuditEntry:
    return AuditEntry.objects.filter(actor_name=staff.email).latest("pk")


# Permissions


@pytest.mark.parametrize(
    ("right", "names"),
    [
        (Right.REDELIVER, ("redeliver", "redeliver_current", "redeliver_forced")),
        (Right.FORCE, ("redeliver_forced",)),
        (Right.TRIAGE, ("acknowledge", "ignore", "resolve")),
    ],
)
def test_an_action_without_its_permission_gets_403_and_has_no_button(
    right: Right, names: tuple[str, ...], browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder, lacks: Any
) -> None:
    (letter,) = bury(tenant, stream, recorder, "user:a")
    every = {"redeliver", "redeliver_current", "redeliver_forced", "acknowledge", "ignore", "resolve"}
    shown = browser.get(place("change", letter.pk)).content.decode()
    assert all(do(letter, name) in shown for name in every)
    lacks(right)
    shown = browser.get(place("change", letter.pk)).content.decode()
    assert {name for name in every if do(letter, name) in shown} == every - set(names)
    for name in names:
        assert browser.post(do(letter, name), {"reason": "why"}).status_code == 403
    letter.refresh_from_db()
    assert letter.state == "open"


def test_pages_get_403_and_columns_are_missing_without_their_permission(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder, lacks: Any
) -> None:
    (letter,) = bury(tenant, stream, recorder, "user:a")
    attempt = Attempt.objects.get(delivery_id=letter.delivery_id)
    attempt_page = reverse("admin:provisioning_attempt_change", args=(quote(attempt.pk),))
    lacks(Right.REDELIVER, Right.EXPORT, Right.TRIAGE, Right.VIEW_BODIES, Right.FORCE)
    listed = browser.get(place("changelist")).content.decode()
    for hidden in (do(letter, "redeliver"), place("redelivery"), place("export"), "redeliver_selected", "decide_selected"):
        assert hidden not in listed
    assert "As it was" not in browser.get(place("change", letter.pk)).content.decode()
    assert letter.event_id in browser.get(place("change", letter.pk)).content.decode()
    assert "As it was" not in browser.get(attempt_page).content.decode()
    kind = place("kind_decision", stream.pk, letter.fingerprint, "ignore")
    for address in (place("redelivery"), place("export"), place("dry_run", letter.pk), kind):
        assert browser.get(address).status_code == 403, address
        assert browser.post(address).status_code == 403, address
    chosen = {"action": "redeliver_selected", "_selected_action": [letter.pk], "confirmed": "yes"}
    browser.post(place("changelist"), chosen)
    assert DeadLetter.objects.get(pk=letter.pk).state == "open"
    kinds = browser.get(place("kinds")).content.decode()
    assert "refused" in kinds
    assert kind not in kinds
    lacks(Right.VIEW)
    for address in (place("changelist"), place("change", letter.pk), place("kinds")):
        assert browser.get(address).status_code == 403, address


def test_a_forced_redelivery_is_refused_without_its_permission(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder, lacks: Any
) -> None:
    letters = bury(tenant, stream, recorder, "user:a", "user:b")
    lacks(Right.FORCE)
    chosen = {"action": "redeliver_selected", "_selected_action": [letters[0].pk], "confirmed": "yes", "force": "on"}
    browser.post(place("changelist"), chosen)
    browser.post(f"{place('redelivery')}?stream_id={stream.pk}", {"rate_per_second": "5", "reason": "why", "force": "on"})
    assert not Delivery.objects.filter(stream_id=stream.pk, is_forced=True).exists()
    assert Job.objects.of(tenant.pk).get().parameters["force"] is False


# Other tenants


def test_exports_and_jobs_and_kinds_of_failure_of_another_tenant_are_not_found(
    browser: Client, stream: EventStream, recorder: Recorder
) -> None:
    other = new_tenant("other")
    strange = make_stream(other)
    (letter,) = bury(other, strange, recorder, "user:stranger", text="strange refusal")
    assert "strange refusal" not in browser.get(place("kinds")).content.decode()
    assert letter.event_id not in content(browser.get(place("export")))
    assert letter.event_id not in content(browser.get(place("export"), {"stream_id": strange.pk}))
    assert browser.get(place("redelivery"), {"stream_id": strange.pk}).status_code == 404
    assert strange.pk not in browser.get(place("redelivery")).content.decode()
    for decision in ("acknowledge", "ignore", "resolve", "hear"):
        address = place("kind_decision", strange.pk, letter.fingerprint, decision)
        assert browser.get(address).status_code == 404
        assert browser.post(address, {"reason": "why", "until": "2999-01-01"}).status_code == 404
    assert browser.post(place("dry_run", letter.pk)).status_code == 404
    assert DeadLetter.objects.get(pk=letter.pk).state == "open"
    assert not IgnoredKind.objects.filter(stream_id=strange.pk).exists()


# Filters


def test_an_export_contains_exactly_the_dead_letters_of_the_list(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letters = [
        *bury(tenant, stream, recorder, "user:database|a", "user:b"),
        *bury(tenant, stream, recorder, "user:c", text="x", status=409),
    ]
    triage.decide(tenant_id=tenant.pk, letter_ids=[letters[1].pk], state="ignored", reason="why", actor="x")
    DeadLetter.objects.filter(pk=letters[2].pk).update(error_scim_type="uniqueness", error_class="shape")
    DeadLetter.objects.filter(pk=letters[0].pk).update(error_status=None, created_at=timezone.now() - timedelta(days=3))
    today = (timezone.now() - timedelta(hours=1)).isoformat()
    for query, expected in (
        ({}, {0, 1, 2}),
        ({"state__exact": "ignored"}, {1}),
        ({"error_class__exact": "shape"}, {2}),
        ({"error_status": "409"}, {2}),
        ({"error_status__isnull": "True"}, {0}),
        ({"error_scim_type": "uniqueness"}, {2}),
        ({"event_type": "user.created"}, set()),
        ({"stream_id": stream.pk, "q": "user:b"}, {1}),
        ({"q": "database|a"}, {0}),
        ({"q": letters[0].event_id}, {0}),
        ({"q": letters[0].fingerprint}, {0, 1}),
        ({"q": stream.pk}, {0, 1, 2}),
        ({"created_at__gte": today}, {1, 2}),
        ({"created_at__lt": today, "state__exact": "open"}, {0}),
    ):
        shown = {row.pk for row in browser.get(place("changelist"), query).context["cl"].result_list}
        exported = {json.loads(line)["id"] for line in content(browser.get(place("export"), {**query, "format": "jsonl"})).splitlines()}
        assert shown == exported == {letters[number].pk for number in expected}, query


@pytest.mark.parametrize("query", [{"tenant_id": "x"}, {"error_status": "many"}, {"state__exact": "gone"}, {"created_at__gte": "soon"}])
def test_an_unknown_filter_redirects_to_the_list_and_changes_nothing(
    query: dict[str, str], browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    bury(tenant, stream, recorder, "user:a")
    for name in ("export", "redelivery"):
        assert browser.get(place(name), {**query, "stream_id": stream.pk}).status_code == 302
    assert not Job.objects.of(tenant.pk).exists()


def test_a_csv_export_contains_no_formulas_and_no_profiles(
    browser: Client, staff: Staff, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    bury(tenant, stream, recorder, "user:=cmd()", text="=HYPERLINK(1)")
    answer = browser.get(place("export"), {"stream_id": stream.pk, "format": "csv"})
    assert answer["Content-Disposition"] == 'attachment; filename="dead-letters.csv"'
    (row,) = csv.DictReader(io.StringIO(content(answer)))
    assert (row["reason"], row["key"]) == ("'=HYPERLINK(1)", "user:=cmd()")
    assert "body" not in row
    assert last_note(staff).act == "Exported"
    assert stream.pk in str(last_note(staff).facts)


def test_an_export_is_streamed_under_asgi(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings
) -> None:
    # Django's asynchronous test client always sends the host "testserver".
    settings.PLATFORM_HOST = "testserver"
    letters = bury(tenant, stream, recorder, "user:a", "user:b")

    async def downloaded() -> str:
        other = AsyncClient()
        other.cookies = browser.cookies
        answer: Any = await other.get(place("export"), {"format": "jsonl"})
        assert answer.is_async
        return b"".join([piece async for piece in answer.streaming_content]).decode()

    lines = asyncio.run(downloaded()).splitlines()
    assert [json.loads(line)["event_id"] for line in lines] == [letter.event_id for letter in letters]


# Decisions


def test_a_decision_requires_a_reason_and_is_recorded_with_it(
    browser: Client, staff: Staff, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    (letter,) = bury(tenant, stream, recorder, "user:a")
    assert browser.post(do(letter, "acknowledge"), {"reason": " "}).status_code == 200
    assert browser.post(do(letter, "acknowledge"), {"reason": "vendor knows"}).status_code == 302
    letter.refresh_from_db()
    assert (letter.state, letter.triage_actor, letter.triage_reason) == ("acknowledged", staff.email, "vendor knows")
    noted = last_note(staff)
    assert (noted.act, noted.reason, noted.object_id) == ("Acknowledge", "vendor knows", str(letter.pk))
    assert (noted.before["state"], noted.after["state"]) == ("open", "acknowledged")  # type: ignore[index]  # an entry of a change has both
    assert browser.post(do(letter, "acknowledge"), {"reason": "again"}).status_code == 403


def test_a_bulk_decision_requires_a_confirmation(
    browser: Client, staff: Staff, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letters = bury(tenant, stream, recorder, "user:a", "user:b", "user:c")
    chosen = {"action": "decide_selected", "_selected_action": [letter.pk for letter in letters[:2]]}
    assert "Change the state of 2 dead letters?" in browser.post(place("changelist"), chosen).content.decode()
    browser.post(place("changelist"), {**chosen, "confirmed": "yes", "state": "resolved", "reason": "by hand"})
    assert list(DeadLetter.objects.filter(stream_id=stream.pk).order_by("pk").values_list("state", flat=True)) == [
        "resolved",
        "resolved",
        "open",
    ]
    assert last_note(staff).facts["letters"] == [letters[0].pk, letters[1].pk]
    assert last_note(staff).reason == "by hand"


def test_a_kind_of_failure_shows_the_number_of_its_dead_letters_and_links_to_them(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letters = bury(tenant, stream, recorder, "user:a", "user:b", "user:a", text="value 17 is too long")
    bury(tenant, stream, recorder, "user:c", text="taken", status=409)
    first, second = failure_kinds(tenant.pk).kinds
    assert (first.open, first.users, first.error_status, first.reason) == (3, 2, 400, "value 17 is too long")
    assert (second.open, second.error_status) == (1, 409)
    page = browser.get(place("kinds")).content.decode()
    assert f"?q={first.fingerprint}&amp;stream_id={stream.pk}" in page
    triage.decide(tenant_id=tenant.pk, letter_ids=[letters[0].pk], state="resolved", reason="why", actor="x")
    assert failure_kinds(tenant.pk).kinds[0].open == 2
    cut = failure_kinds(tenant.pk, letters=1)
    assert (cut.is_cut, len(cut.kinds)) == (True, 1)


def test_a_kind_of_failure_can_be_ignored_until_a_date_and_reopened(
    browser: Client, staff: Staff, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    (letter,) = bury(tenant, stream, recorder, "user:a")
    address = place("kind_decision", stream.pk, letter.fingerprint, "ignore")
    assert browser.post(address, {"until": "2020-01-01", "reason": "known"}).status_code == 200
    day = (timezone.now() + timedelta(days=2)).date().isoformat()
    assert browser.post(address, {"until": day, "reason": "known"}).status_code == 302
    assert last_note(staff).facts["until"].startswith(day)
    assert bury(tenant, stream, recorder, "user:b")[0].state == "ignored"
    assert "Stop ignoring" in browser.get(place("kinds")).content.decode()
    assert browser.post(place("kind_decision", stream.pk, letter.fingerprint, "hear"), {"reason": "fixed"}).status_code == 302
    assert bury(tenant, stream, recorder, "user:c")[0].state == "open"


# Redelivering all listed dead letters


def test_a_job_redelivers_all_listed_dead_letters_with_progress_and_cancellation(
    browser: Client, staff: Staff, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    bury(tenant, stream, recorder, "user:a", "user:b", "user:c")
    bury(tenant, stream, recorder, "user:d", text="another", status=409)
    address = f"{place('redelivery')}?stream_id={stream.pk}&error_status=400"
    asked = browser.get(address).content.decode()
    assert "3\n" in asked
    assert "error status 400" in asked
    assert browser.post(address, {"rate_per_second": "1", "reason": ""}).status_code == 200
    assert browser.post(address, {"rate_per_second": "1000", "reason": "why"}).status_code == 200
    started = browser.post(address, {"rate_per_second": "1", "reason": "fixed", "start": "x"})
    job = Job.objects.of(tenant.pk).get()
    page = reverse("admin:identity_job_change", args=(quote(job.pk),))
    assert started.headers["location"] == page
    assert last_note(staff).reason == "fixed"
    assert "already" in browser.post(address, {"rate_per_second": "1", "reason": "again"}).content.decode()
    run_job(job.pk)
    deliver_all(stream)
    shown = browser.get(page).content.decode()
    for told in ("1 per second", "Superseded", "Failed again", staff.email):
        assert told in shown
    cancel = reverse("admin:identity_job_action", args=(quote(job.pk), "cancel"))
    assert cancel in shown
    assert browser.post(cancel).status_code == 302
    job.refresh_from_db()
    assert (job.status, job.status_details) == ("failed", f"Canceled by {staff.email}.")
    assert browser.post(cancel).status_code == 403
    states = DeadLetter.objects.filter(stream_id=stream.pk).order_by("key").values_list("state", flat=True)
    assert list(states) == ["resolved", "resolved", "open", "open"]


def test_a_single_dead_letter_can_be_redelivered_before_the_other_dead_letters(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letters = bury(tenant, stream, recorder, "user:b", "user:a")
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="20 deliveries failed")
    address = f"{place('redelivery')}?stream_id={stream.pk}"
    asked = browser.get(address).content.decode()
    assert "The stream is held: 20 deliveries failed" in asked
    answer = browser.post(address, {"rate_per_second": "1", "reason": "try", "probe": "x"})
    assert answer.headers["location"] == place("change", letters[1].pk)
    assert set(DeadLetter.objects.filter(state="redelivered").values_list("pk", flat=True)) & {one.pk for one in letters} == {letters[1].pk}
    assert not Job.objects.of(tenant.pk).exists()


def test_consecutive_failures_are_shown_before_a_bulk_redelivery(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    bury(tenant, stream, recorder, "user:a")
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="x")
    breaker.resume_stream(stream_id=stream.pk, tenant_id=tenant.pk)
    Breaker.objects.filter(stream_id=stream.pk).update(failures=7)
    assert "The last 7 deliveries of this stream failed." in browser.get(place("redelivery"), {"stream_id": stream.pk}).content.decode()


def test_the_page_offers_the_streams_of_the_dead_letters_if_none_is_selected(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    bury(tenant, stream, recorder, "user:a")
    further = make_stream(tenant)
    bury(tenant, further, recorder, "user:b")
    page = browser.get(place("redelivery"), {"error_status": "400"}).content.decode()
    for offered in (stream, further):
        assert f"?error_status=400&amp;stream_id={offered.pk}" in page


def test_the_only_stream_of_the_listed_dead_letters_is_selected_automatically(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    bury(tenant, stream, recorder, "user:a")
    answer = browser.get(place("redelivery"), {"error_status": "400"})
    assert (answer.status_code, answer["Location"]) == (302, f"{place('redelivery')}?error_status=400&stream_id={stream.pk}")


# The page of an attempt and of a delivery


def test_the_page_of_an_attempt_shows_requests_responses_and_resources_with_markup_escaped(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    (letter,) = bury(tenant, stream, recorder, "user:a")
    attempt = Attempt.objects.get(delivery_id=letter.delivery_id)
    page = browser.get(reverse("admin:provisioning_attempt_change", args=(quote(attempt.pk),))).content.decode()
    for shown in (
        "/Users/7",
        "30 ms",
        "&lt;b&gt;no&lt;/b&gt;",
        "Sent to the server",
        "On the server before",
        "As it should be",
        "As it was",
    ):
        assert shown in page
    assert "<b>no</b>" not in page


def test_the_page_of_a_delivery_shows_its_next_attempt(
    browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings
) -> None:
    settings.DELIVERY_RETRY_DELAYS = [600]
    recorder.answers["user:a"] = [DataFailure("refused", status=400)]
    append_events(tenant, ["user:a", "user:a"])
    dispatch.dispatch_tenant(tenant.pk)
    delivering.deliver_lane(stream.pk, "user:a")
    first, second = Delivery.objects.filter(stream_id=stream.pk).order_by("position")
    pages = [browser.get(reverse("admin:provisioning_delivery_change", args=(quote(row.pk),))).content.decode() for row in (first, second)]
    assert f"{Lane.objects.get(stream_id=stream.pk).not_before:%Y-%m-%d %H:%M:%S}" in pages[0]
    assert "Waits for earlier events of the same entity" in pages[1]
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="away")
    assert (
        "Waits while the stream is held: away"
        in browser.get(reverse("admin:provisioning_delivery_change", args=(quote(first.pk),))).content.decode()
    )


def test_a_dead_letter_in_redelivery_has_no_buttons(browser: Client, tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    (letter,) = bury(tenant, stream, recorder, "user:a")
    redelivery.redeliver_letters(tenant_id=tenant.pk, letter_ids=[letter.pk], order=redelivery.Order("x"))
    page = browser.get(place("change", letter.pk)).content.decode()
    assert place("dry_run", letter.pk) not in page
    for name in ("redeliver", "redeliver_current", "redeliver_forced", "acknowledge", "open_again"):
        assert do(letter, name) not in page
