"""The states of the steps of a guided setup, and the warning before a stream with untested settings is enabled."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from django.test import Client

from events.models import EventStream
from identity.models import Connection, Job, Tenant
from provisioning.mapping.table import DEFAULT_TABLE
from provisioning.models import Action
from provisioning.services.actions import update_action
from provisioning.synchronization import work  # noqa: F401  (registers the jobs)
from tests.factories.identity import make_user
from tests.factories.scim import TOKEN, RealServer
from tests.provisioning.admin.test_guided_setup import BEGIN, begun, browser, newest_job, place, process, server, text_of

__all__ = ["browser", "process", "server"]


def test_an_untested_setup_can_be_enabled_only_after_accepting_a_warning(browser: Client, tenant: Tenant, server: RealServer) -> None:
    action = begun(browser, tenant, server.base_url)

    shown = text_of(browser.get(place("enable", action)))
    refused = browser.post(place("enable", action), {"begin": "changes"})

    for missing in ("The connection is not tested", "The mapping is not tested", "No dry run has ended"):
        assert missing in shown
    assert list(refused.context["form"].errors) == ["accept_untested"]
    assert not EventStream.objects.of(tenant.pk).exists()


def test_each_step_shows_whether_it_is_done(browser: Client, tenant: Tenant, server: RealServer) -> None:
    action = begun(browser, tenant, server.base_url)
    browser.post(place("test", action))

    steps = browser.get(place("preview", action)).context["all_steps"]

    assert [(step["title"], step["is_done"], step["is_here"]) for step in steps] == [
        ("Server", True, False),
        ("Test", True, False),
        ("Mapping", False, True),
        ("Dry run", False, False),
        ("Go live", False, False),
    ]


def prepared(browser: Client, action: Action) -> None:
    """Complete the steps from the connection test to the dry run."""
    browser.post(place("test", action))
    browser.post(place("preview", action), {"user": "anna@example.test"})
    browser.post(place("dry-run", action), {"match": "userName", "rate": "20"})
    assert newest_job(Tenant.objects.get(pk=action.tenant_id)).status == Job.Status.COMPLETED


def states_in(browser: Client, action: Action) -> list[str]:
    return [step["state"] for step in browser.get(place("enable", action)).context["all_steps"]]


@pytest.fixture
def tested(browser: Client, tenant: Tenant, database_connection: Connection, server: RealServer) -> Action:
    """Return the action of a setup whose tests have all passed."""
    make_user(connection=database_connection, email="anna@example.test")
    action = begun(browser, tenant, server.base_url)
    prepared(browser, action)
    return action


def test_a_new_token_after_the_tests_requires_repeated_tests(browser: Client, tenant: Tenant, tested: Action) -> None:
    assert states_in(browser, tested) == ["Done", "Done", "Done", "Done", "To do"]

    browser.post(place("server", tested), {"name": "Wiki", "SCIM_BEARER_TOKEN": "another"})

    assert states_in(browser, tested) == ["Done", "Repeat", "Repeat", "Repeat", "To do"]
    shown = text_of(browser.get(place("enable", tested)))
    for name in ("connection test", "preview of the mapping", "dry run"):
        assert f"The settings were changed after the last {name}." in shown
    assert list(browser.post(place("enable", tested), {"begin": "changes"}).context["form"].errors) == ["accept_untested"]
    assert "The settings were changed after the last connection test. Repeat this step." in text_of(browser.get(place("test", tested)))
    assert EventStream.objects.of(tenant.pk).get().status == EventStream.Status.DISABLED


def test_a_changed_mapping_after_the_tests_requires_repeated_tests(browser: Client, tenant: Tenant, tested: Action) -> None:
    update_action(tenant_id=tenant.pk, action_id=tested.pk, changes={"mapping": [asdict(row) for row in DEFAULT_TABLE[:-1]]})

    assert states_in(browser, tested) == ["Done", "Repeat", "Repeat", "Repeat", "To do"]
    prepared(browser, tested)
    assert states_in(browser, tested) == ["Done", "Done", "Done", "Done", "To do"]


def test_a_dry_run_after_a_changed_mapping_does_not_replace_the_other_tests(browser: Client, tenant: Tenant, tested: Action) -> None:
    update_action(tenant_id=tenant.pk, action_id=tested.pk, changes={"mapping": [asdict(row) for row in DEFAULT_TABLE[:-1]]})

    browser.post(place("dry-run", tested), {"match": "userName", "rate": "20"})

    assert newest_job(tenant).status == Job.Status.COMPLETED
    assert states_in(browser, tested) == ["Done", "Repeat", "Repeat", "Done", "To do"]


def test_saving_the_mapping_during_a_setup_redirects_to_the_step_of_the_setup(browser: Client, tenant: Tenant, server: RealServer) -> None:
    action = begun(browser, tenant, server.base_url)
    address = browser.get(place("preview", action)).context["mapping_url"]
    assert f'href="{place("preview", action)}"' in text_of(browser.get(address))

    answer = browser.post(address, {"reset": "1"}, follow=True)

    assert answer.request["PATH_INFO"] == place("preview", action)
    assert "The draft has the default mapping again." in text_of(answer)


def test_a_failed_test_is_named_before_the_stream_is_enabled(browser: Client, tenant: Tenant, server: RealServer) -> None:
    action = begun(browser, tenant, server.base_url)
    browser.post(place("server", action), {"name": "Wiki", "SCIM_BEARER_TOKEN": "wrong"})
    browser.post(place("test", action))

    assert states_in(browser, action) == ["Done", "Failed", "To do", "To do", "To do"]
    assert "The last connection test failed." in text_of(browser.get(place("enable", action)))


def test_saving_the_server_without_a_change_keeps_the_tests_valid(browser: Client, tenant: Tenant, server: RealServer) -> None:
    action = begun(browser, tenant, server.base_url)
    browser.post(place("test", action))

    assert browser.post(place("server", action), {"name": "Wiki"}).headers["Location"] == place("test", action)

    assert states_in(browser, action) == ["Done", "Done", "To do", "To do", "To do"]


def test_the_next_step_is_the_main_button_only_after_the_test_has_passed(browser: Client, tenant: Tenant, server: RealServer) -> None:
    action = begun(browser, tenant, server.base_url)
    before = browser.get(place("test", action)).context["is_next_primary"]

    browser.post(place("test", action))

    assert (before, browser.get(place("test", action)).context["is_next_primary"]) == (False, True)


def test_the_last_step_warns_if_another_stream_writes_to_the_same_server(
    browser: Client, tenant: Tenant, tested: Action, server: RealServer
) -> None:
    assert browser.get(place("enable", tested)).context["overlaps"] == []
    browser.post(place("enable", tested), {"begin": "changes"})
    browser.post(f"{BEGIN}new/", {"name": "Second", "SCIM_BASE_URL": server.base_url, "SCIM_BEARER_TOKEN": TOKEN})
    second = Action.objects.of(tenant.pk).get(name="Second")
    prepared(browser, second)

    warning = "The event stream Wiki writes to the same server for all connections"
    assert warning in text_of(browser.get(place("enable", second)))
