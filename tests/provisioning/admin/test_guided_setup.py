"""The guided setup of a SCIM server. No event is delivered before the last step, and a setup can be continued or discarded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from events.models import EventStream
from identity.models import Connection, Job, Tenant
from identity.services.jobs import run_job
from provisioning.admin.setup import kept_token
from provisioning.engine.streams import synchronization_target
from provisioning.guided_setup import setups
from provisioning.models import Action, ActionVersion, Trial
from provisioning.synchronization import work  # noqa: F401  (registers the jobs)
from tests.config.console.staff_account.sessions import grow_old
from tests.factories.admin import browser_of, new_staff, new_tenant
from tests.factories.identity import make_user
from tests.factories.models.events import EventStreamFactory
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import TOKEN, RealServer, running_scim_server

BEGIN = "/admin/provisioning/connect/"


@pytest.fixture(scope="module")
def process() -> Iterator[RealServer]:
    with running_scim_server() as running:
        yield running


@pytest.fixture
def server(process: RealServer) -> Iterator[RealServer]:
    yield process
    process.clear()


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


def place(step: str, action: Action) -> str:
    return reverse(f"admin:provisioning_connect_{step}", kwargs={"action_id": action.pk})


def begun(browser: Client, tenant: Tenant, base_url: str) -> Action:
    answer = browser.post(f"{BEGIN}new/", {"name": "Wiki", "SCIM_BASE_URL": base_url, "SCIM_BEARER_TOKEN": TOKEN})
    action = Action.objects.of(tenant.pk).get()
    assert answer.headers["Location"] == place("test", action)
    return action


def text_of(answer: Any) -> str:
    assert answer.status_code == 200
    return str(answer.content.decode())


def newest_job(tenant: Tenant) -> Job:
    job = Job.objects.of(tenant.pk).order_by("-created_at", "-pk")[0]
    run_job(job.pk)
    job.refresh_from_db()
    return job


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"SCIM_BASE_URL": "https://scim.example.test/v2", "SCIM_BEARER_TOKEN": "x"}, "name"),
        ({"name": "Wiki", "SCIM_BEARER_TOKEN": "x"}, "SCIM_BASE_URL"),
        ({"name": "Wiki", "SCIM_BASE_URL": "https://scim.example.test/v2"}, "SCIM_BEARER_TOKEN"),
        ({"name": "Wiki", "SCIM_BASE_URL": "nowhere", "SCIM_BEARER_TOKEN": "x"}, "SCIM_BASE_URL"),
        ({"name": "Wiki", "SCIM_BASE_URL": "https://a.test", "SCIM_BEARER_TOKEN": "x", "SCIM_TIMEOUT_MS": "soon"}, "SCIM_TIMEOUT_MS"),
    ],
)
def test_invalid_values_are_reported_at_their_field_and_nothing_is_stored(
    browser: Client, tenant: Tenant, values: dict[str, str], field: str
) -> None:
    answer = browser.post(f"{BEGIN}new/", values)

    assert list(answer.context["form"].errors) == [field]
    assert not Action.objects.of(tenant.pk).exists()


def test_errors_name_the_fields_of_the_form(browser: Client) -> None:
    values = {"name": "Wiki", "SCIM_BASE_URL": "nowhere", "SCIM_BEARER_TOKEN": "a b", "SCIM_TIMEOUT_MS": "soon"}
    answer = browser.post(f"{BEGIN}new/", values)

    errors = {name: texts[0] for name, texts in answer.context["form"].errors.items()}
    assert errors["SCIM_BASE_URL"].startswith("The address must be a URL that begins with")
    assert errors["SCIM_BEARER_TOKEN"].startswith("The token must be printable ASCII")
    assert errors["SCIM_TIMEOUT_MS"].startswith("The time limit must be a whole number")
    # The group of fields that is collapsed by default is open, because one of its fields has an error.
    assert "<details open>" in text_of(answer)
    assert "<details open>" not in text_of(browser.get(f"{BEGIN}new/"))


def test_only_the_last_step_enables_the_stream(
    browser: Client, tenant: Tenant, database_connection: Connection, server: RealServer
) -> None:
    make_user(connection=database_connection, email="anna@example.test")
    action = begun(browser, tenant, server.base_url)
    assert TOKEN not in text_of(browser.get(place("server", action)))

    assert "All checks passed" in text_of(browser.post(place("test", action), follow=True)) or "Usable" in text_of(
        browser.get(place("test", action))
    )
    assert "Would create the user" in text_of(browser.post(place("preview", action), {"user": "anna@example.test"}, follow=True))
    assert not ActionVersion.objects.filter(action=action).exists()
    assert not EventStream.objects.of(tenant.pk).exists()

    browser.post(place("dry-run", action), {"match": "userName", "rate": "20"})
    assert newest_job(tenant).status == Job.Status.COMPLETED
    assert "1 created" in text_of(browser.get(place("dry-run", action)))
    stream = EventStream.objects.of(tenant.pk).get()
    assert (stream.status, server.users()) == (EventStream.Status.DISABLED, [])

    browser.post(place("enable", action), {"begin": "synchronize"})
    assert newest_job(tenant).status == Job.Status.COMPLETED
    stream.refresh_from_db()
    assert stream.status == EventStream.Status.ENABLED
    assert [user["userName"] for user in server.users()] == ["anna@example.test"]
    assert browser.get(place("enable", action)).status_code == 404
    assert place("discard", action) not in text_of(browser.get(BEGIN))


def test_an_interrupted_setup_continues_at_the_next_step(browser: Client, tenant: Tenant, server: RealServer) -> None:
    action = begun(browser, tenant, server.base_url)
    assert place("test", action) in text_of(browser.get(BEGIN))

    browser.post(place("test", action))
    page = text_of(browser_of(new_staff(tenant)).get(BEGIN))

    assert place("preview", action) in page
    assert place("discard", action) in page


def test_an_empty_form_is_answered_with_the_required_fields(browser: Client, tenant: Tenant) -> None:
    page = text_of(browser.post(BEGIN + "new/", {}))
    assert "This field is required." in page
    assert not Action.objects.of(tenant.pk).exists()


def test_discarding_a_setup_deletes_all_its_rows(browser: Client, tenant: Tenant, server: RealServer) -> None:
    action = begun(browser, tenant, server.base_url)
    browser.post(place("dry-run", action), {"match": "userName", "rate": "20"})
    refused = text_of(browser.post(place("discard", action)))
    assert "The dry run still runs" in refused
    assert newest_job(tenant).is_finished

    assert "discarded" in text_of(browser.post(place("discard", action), follow=True))
    assert not Action.objects.of(tenant.pk).exists()
    assert not EventStream.objects.of(tenant.pk).exists()


def test_a_setup_without_a_first_synchronization_enables_the_stream_immediately(
    browser: Client, tenant: Tenant, server: RealServer
) -> None:
    action = begun(browser, tenant, server.base_url)
    browser.post(place("enable", action), {"begin": "changes", "accept_untested": "on"})

    assert EventStream.objects.of(tenant.pk).get().status == EventStream.Status.ENABLED
    assert not Job.objects.of(tenant.pk).exists()


def test_the_field_of_the_preview_contains_the_user_of_the_last_preview(
    browser: Client, tenant: Tenant, database_connection: Connection, server: RealServer
) -> None:
    for name in ("anna", "bert"):
        make_user(connection=database_connection, email=f"{name}@example.test")
    action = begun(browser, tenant, server.base_url)
    assert browser.get(place("preview", action)).context["form"]["user"].value() == "bert@example.test"

    browser.post(place("preview", action), {"user": "anna@example.test"})

    assert browser.get(place("preview", action)).context["form"]["user"].value() == "anna@example.test"


def test_an_unknown_user_is_reported_at_the_field(browser: Client, tenant: Tenant, server: RealServer) -> None:
    action = begun(browser, tenant, server.base_url)
    answer = browser.post(place("preview", action), {"user": "nobody@example.test"})

    assert answer.context["form"].errors == {"user": ["The user does not exist."]}


def test_the_setup_does_not_send_a_stored_token_to_another_server(browser: Client, tenant: Tenant, server: RealServer) -> None:
    action = begun(browser, tenant, server.base_url)
    answer = browser.post(place("server", action), {"name": "Wiki", "SCIM_BASE_URL": "https://elsewhere.example.test/v2"})

    assert "SCIM_BEARER_TOKEN" in answer.context["form"].errors


def test_the_setup_of_another_tenant_is_not_found(browser: Client, tenant: Tenant, server: RealServer) -> None:
    action = begun(browser, tenant, server.base_url)
    stranger = browser_of(new_staff(new_tenant()))

    assert "Wiki" not in text_of(stranger.get(BEGIN))
    for step in ("server", "test", "preview", "dry-run", "enable", "discard"):
        assert stranger.get(place(step, action)).status_code == 404
        assert stranger.post(place(step, action)).status_code == 404


def test_a_token_is_not_shown_or_accepted_without_a_recent_proof(browser: Client, tenant: Tenant, server: RealServer) -> None:
    action = begun(browser, tenant, server.base_url)
    before = action.secrets.get(name="SCIM_BEARER_TOKEN").sealed
    grow_old(browser)
    for address in (f"{BEGIN}new/", place("server", action)):
        for answer in (browser.get(address), browser.post(address, {"name": "Other", "SCIM_BEARER_TOKEN": "stolen"})):
            assert answer.headers["Location"].startswith("/admin/account/prove/?next="), address
    assert Action.objects.of(tenant.pk).get().name == "Wiki"
    assert action.secrets.get(name="SCIM_BEARER_TOKEN").sealed == before
    # The other steps do not show or accept secrets.
    assert browser.get(place("test", action)).status_code == 200


def test_the_first_step_asks_for_the_kind_of_server(browser: Client) -> None:
    assert next(iter(browser.get(f"{BEGIN}new/").context["form"].fields)) == "server_profile"


def test_the_steps_after_the_first_show_the_notes_on_the_kind_of_server(browser: Client, tenant: Tenant, server: RealServer) -> None:
    action = begun(browser, tenant, server.base_url)
    browser.post(place("server", action), {"name": "Wiki", "server_profile": "github"})

    for step in ("test", "preview", "dry-run", "enable"):
        assert "A deletion suspends the account permanently" in text_of(browser.get(place(step, action))), step


def test_the_token_is_kept_and_hidden_while_another_field_has_an_error(browser: Client, tenant: Tenant, server: RealServer) -> None:
    refused = browser.post(f"{BEGIN}new/", {"name": "Wiki", "SCIM_BASE_URL": "nowhere", "SCIM_BEARER_TOKEN": TOKEN})
    assert TOKEN not in text_of(refused)
    assert TOKEN not in str(dict(browser.session))

    answer = browser.post(f"{BEGIN}new/", {"name": "Wiki", "SCIM_BASE_URL": server.base_url})

    action = Action.objects.of(tenant.pk).get()
    assert answer.headers["Location"] == place("test", action)
    assert action.secrets.filter(name="SCIM_BEARER_TOKEN").exists()
    assert "kept_token" not in browser.session


def test_a_kept_token_is_not_available_to_another_account_or_after_some_time(
    browser: Client, tenant: Tenant, server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"name": "Wiki", "SCIM_BASE_URL": "nowhere", "SCIM_BEARER_TOKEN": TOKEN}
    browser.post(f"{BEGIN}new/", values)
    kept = browser.session["kept_token"]
    other = browser_of(new_staff(tenant))
    session = other.session
    session["kept_token"] = kept
    session.save()
    again = {"name": "Wiki", "SCIM_BASE_URL": server.base_url}

    assert list(other.post(f"{BEGIN}new/", again).context["form"].errors) == ["SCIM_BEARER_TOKEN"]
    monkeypatch.setattr(kept_token, "KEPT_SECONDS", -1)
    assert list(browser.post(f"{BEGIN}new/", again).context["form"].errors) == ["SCIM_BEARER_TOKEN"]
    assert not Action.objects.of(tenant.pk).exists()


def test_the_overview_needs_no_query_for_each_setup(
    browser: Client, tenant: Tenant, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_setups(tenant, 1)
    browser.get(BEGIN)
    with CaptureQueriesContext(connection) as queries:
        assert "Test" in text_of(browser.get(BEGIN))
    make_setups(tenant, 8)

    with django_assert_num_queries(len(queries)):
        assert text_of(browser.get(BEGIN)).count("Discard") == 9


def test_each_value_of_the_overview_names_its_column_for_phones(browser: Client, tenant: Tenant) -> None:
    make_setups(tenant, 1)

    (table,) = re.findall(r'<table class="cards">.*?</table>', text_of(browser.get(BEGIN)), re.DOTALL)
    assert "<td>" not in table
    assert re.findall(r'<td data-label="([^"]+)"', table) == ["Created (UTC)", "Next step", "Actions"]


def test_the_overview_names_the_first_step_that_is_not_done(browser: Client, tenant: Tenant) -> None:
    untested, tested, tried, ready = make_setups(tenant, 4)
    passed, failed = Trial.Outcome.PASSED, Trial.Outcome.FAILED
    for action, kind, outcome in (
        (untested, Trial.Kind.CONNECTION, passed),
        (untested, Trial.Kind.WRITE_CHECK, failed),
        (tested, Trial.Kind.WRITE_CHECK, failed),
        (tested, Trial.Kind.CONNECTION, passed),
        *((action, kind, passed) for action in (tried, ready) for kind in (Trial.Kind.CONNECTION, Trial.Kind.DRY_RUN)),
    ):
        Trial.objects.create(action=action, kind=kind, outcome=outcome, actor="ada@example.test")
    for status in (Job.Status.FAILED, Job.Status.COMPLETED):
        make_dry_run(ready, status)

    drafts = setups.unfinished(tenant.pk)
    steps = dict(zip([setup.action.pk for setup in drafts], setups.next_steps(tenant.pk, drafts), strict=True))
    assert steps == {untested.pk: "test", tested.pk: "preview", tried.pk: "dry-run", ready.pk: "enable"}


def make_setups(tenant: Tenant, number: int) -> list[Action]:
    """Create `number` setups, each with an action and a disabled stream without deliveries. Return the actions."""
    actions = ActionFactory.create_batch(number, tenant_id=tenant.pk)
    for action in actions:
        EventStreamFactory.create(
            tenant_id=tenant.pk, status="disabled", destination_type="action", destination={"action_id": str(action.pk)}
        )
    return list(actions)


def make_dry_run(action: Action, status: Job.Status) -> None:
    stream = EventStream.objects.of(action.tenant_id).get(destination__action_id=str(action.pk))
    target, plan = synchronization_target(stream.pk), {"is_dry_run": True}
    job = Job(tenant_id=action.tenant_id, type=Job.Type.STREAM_SYNCHRONIZATION, target=target, status=status, parameters={"plan": plan})
    job.save(force_insert=True)
