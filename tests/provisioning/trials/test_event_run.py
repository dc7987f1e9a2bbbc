"""Trials in which a worker runs an action for a test event. They keep the time budget, and show errors of an installed entry point."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.db import connection
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from identity.models import Tenant
from identity.services.failures import Conflict, Invalid
from provisioning import tasks
from provisioning.actions.registry import PACKAGE
from provisioning.actions.setups import deployed_setup, draft_setup
from provisioning.models import Action, Delivery, Trial
from provisioning.services.actions import create_action
from provisioning.trials import event_trials
from tests.deadlines import eventually
from tests.factories.admin import browser_of, new_staff
from tests.factories.models.provisioning import ActionFactory
from tests.management import Management

SECRET = "own-secret-value-1234"
_MODULE = f"{PACKAGE}.tried"


class Echo:
    """An entry point that logs its arguments."""

    def onExecuteEventStream(self, event: Any, api: Any) -> None:  # noqa: N802  (the name of the trigger)
        api.log("info", f"{event.message.type} {event.message.purpose} {event.secrets.get('KEY')}", seen=event.message.data.object)


class Hang:
    """An entry point that never ends."""

    def on_execute_event_stream(self, event: Any, api: Any) -> None:
        while True:
            time.sleep(0.01)


class Crash:
    """An entry point that raises an error whose text contains a secret."""

    def on_execute_event_stream(self, event: Any, api: Any) -> None:
        raise RuntimeError(f"cannot use {event.secrets['KEY']}")


@pytest.fixture(autouse=True)
def installed(settings: Settings) -> Iterator[None]:
    """Install a module with the three entry points, as a Python package would."""
    settings.SECURE_SSL_REDIRECT = False
    settings.DELIVERY_BUDGET_SECONDS = 1.0
    module = ModuleType(_MODULE)
    for kind in (Echo, Hang, Crash):
        setattr(module, kind.__name__, type(kind.__name__, (kind,), {"__module__": _MODULE}))
    sys.modules[_MODULE] = module
    yield
    del sys.modules[_MODULE]


def action_of(tenant: Tenant, name: str, **more: Any) -> Action:
    return create_action(tenant_id=tenant.pk, name=name, entry_point_path=f"{_MODULE}.{name}", secrets={"KEY": SECRET}, **more)


def ended(action: Action, event_type: str = "user.created", data: dict[str, Any] | None = None) -> Trial:
    """Run the draft and return the ended trial. The run is in this thread, because only the main thread can be interrupted."""
    trial = event_trials.ask_for_event(draft_setup(action), event_type=event_type, data=data, actor="a test")
    tasks.try_event(str(trial.pk))
    return event_trials.wait_for_end(trial)


@pytest.fixture
def worker(committed_db: None) -> Iterator[None]:
    """Run trials in a thread, as a worker does, until the test ends."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.wait(0.05):
            for trial in Trial.objects.filter(outcome="running", event__isnull=False):
                tasks.try_event(str(trial.pk))
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    is_over.set()
    thread.join()


def test_a_hanging_entry_point_is_interrupted_at_the_end_of_its_budget(tenant: Tenant) -> None:
    began = time.monotonic()
    trial = ended(action_of(tenant, "Hang"))

    assert time.monotonic() - began < 10
    assert (trial.outcome, "was interrupted" in trial.summary) == ("failed", True)


def test_the_error_of_an_entry_point_is_shown_with_its_secret_masked(tenant: Tenant) -> None:
    trial = ended(action_of(tenant, "Crash"))

    assert trial.outcome == "failed"
    assert "the action raised RuntimeError: cannot use" in trial.summary
    assert SECRET not in str([trial.summary, trial.steps])


def test_log_lines_are_stored_masked_and_the_event_is_not_stored(tenant: Tenant) -> None:
    trial = ended(action_of(tenant, "Echo"), data={"object": {"user_id": "u-1"}, "context": {}})

    (step,) = trial.steps
    (line,) = step["details"]["log"]
    assert (trial.outcome, step["state"], step["message"]) == ("passed", "ok", "Delivered: completed")
    assert line["message"].startswith("user.created test ")
    assert "u-1" in line["fields"]["seen"]
    assert SECRET not in str(trial.steps)
    assert trial.event is None
    assert not Delivery.objects.filter(tenant_id=tenant.pk).exists()


def test_a_trial_of_the_deployed_version_does_not_run_the_draft(tenant: Tenant) -> None:
    action = action_of(tenant, "Echo", deploy=True)
    action.entry_point = f"{_MODULE}.Crash"
    action.save(update_fields=["entry_point"])
    setup = deployed_setup(tenant_id=tenant.pk, action_id=action.pk)
    assert setup is not None
    trial = event_trials.ask_for_event(setup, event_type="user.created", data=None, actor="a test")
    event_trials.work_on_event(trial.pk)

    assert (event_trials.wait_for_end(trial).outcome, trial.version) == ("passed", 1)
    assert ended(action).outcome == "failed"


def test_a_trial_runs_once_even_if_its_message_is_delivered_twice(tenant: Tenant) -> None:
    action = action_of(tenant, "Echo")
    trial = ended(action)
    for _ in range(2):
        tasks.try_event(str(trial.pk))

    assert len(event_trials.wait_for_end(trial).steps) == 1


def test_a_trial_that_no_worker_starts_is_given_up_and_is_not_run_later(tenant: Tenant) -> None:
    action = action_of(tenant, "Echo")
    trial = event_trials.ask_for_event(draft_setup(action), event_type="user.created", data=None, actor="a test")
    with pytest.raises(Conflict, match="Another test"):
        event_trials.ask_for_event(draft_setup(action), event_type="user.created", data=None, actor="another")
    with pytest.raises(Conflict, match="No worker has started the run"):
        event_trials.wait_for_end(trial, begin_seconds=0.2)
    tasks.try_event(str(trial.pk))

    trial.refresh_from_db()
    assert (trial.outcome, trial.event, trial.steps) == ("lost", None, [])


def test_an_unknown_type_is_refused(tenant: Tenant) -> None:
    with pytest.raises(Invalid):
        event_trials.ask_for_event(draft_setup(action_of(tenant, "Echo")), event_type="user.renamed", data=None, actor="a test")


@pytest.mark.usefixtures("worker")
def test_clients_can_try_entry_points_over_the_management_interface(tenant: Tenant) -> None:
    api = Management(tenant)
    action = action_of(tenant, "Echo")
    refused = api.post(f"actions/actions/{action.pk}/test", {"payload": {"test": "event"}})
    assert (refused.status, "event_type" in refused.json["message"]) == (400, True)
    assert api.post(f"actions/actions/{action.pk}/test", {"payload": {"event_type": "user.renamed"}}).status == 400
    assert api.post(f"actions/actions/{action.pk}/test", {"payload": {"test": "connection"}}).status == 400

    answer = api.post(f"actions/actions/{action.pk}/test", {"payload": {"event_type": "user.updated", "data": {"object": {}}}})
    assert (answer.status, answer.json["payload"]["outcome"]) == (200, "passed"), answer.body
    assert SECRET not in answer.body.decode()
    execution = api.get(f"actions/executions/{answer.json['payload']['execution_id']}").json
    assert (execution["status"], execution["results"][0]["action_name"]) == ("final", "Echo")


@pytest.mark.usefixtures("worker")
def test_staff_can_try_entry_points_on_the_page_of_an_action(tenant: Tenant) -> None:
    browser: Client = browser_of(new_staff(tenant))
    action = action_of(tenant, "Crash")
    scim = ActionFactory.create(tenant_id=tenant.pk, name="scim", template="scim-user-provisioning")
    page = reverse("admin:provisioning_action_event-run", args=(quote(action.pk),))
    assert page in browser.get(reverse("admin:provisioning_action_change", args=(quote(action.pk),))).content.decode()
    assert browser.get(reverse("admin:provisioning_action_event-run", args=(quote(scim.pk),))).status_code == 404

    text = browser.post(page, {"event_type": "user.created", "event_data": ""}).content.decode()
    assert "the action raised RuntimeError" in text
    assert SECRET not in text
    assert browser_of(new_staff(tenant, "auditor")).post(page, {"event_type": "user.created"}).status_code == 403
    eventually(lambda: not Trial.objects.filter(action=action, outcome="running").exists())
