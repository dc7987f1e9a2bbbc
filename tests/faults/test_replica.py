"""Lists of the admin and exports on a real streaming replica, which is paused, lags and fails. Everything else reads from the primary."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.request import Request, urlopen

import pytest
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django.fixtures import Settings
from pytest_django.plugin import DjangoDbBlocker

from config.settings.database_url import replica_settings
from events.log.numbering import number_tenant
from foundation.database import replica
from foundation.database.replica import ALIAS, current_position
from identity.exports.exports import exported_users, page_of
from identity.models import Connection, Tenant, User
from identity.services.users import create_user
from tests.conformance.target import make_target
from tests.conformance.web_process import web_process
from tests.deadlines import eventually
from tests.factories.admin import browser_of, new_staff, new_tenant
from tests.faults.worker import url_of_test_database as database_url
from tests.standby import Standby, standby_of

pytestmark = pytest.mark.fault


@pytest.fixture(scope="module")
def server(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Standby]:
    with standby_of(database_url()) as standby:
        yield standby


@pytest.fixture
def standby(server: Standby, committed_db: None, settings: Settings) -> Iterator[Standby]:
    """A running standby that this process uses as its replica, and that contains every commit so far."""
    settings.REPLICA_MAX_LAG_SECONDS = 3600.0
    replica._Failure.at = None
    connections.settings[ALIAS] = {
        **connections.settings["default"],
        **replica_settings(server.url(connection.settings_dict["NAME"]), pool_size=0),
    }
    if server.process is None:
        server.start()
    yield server
    connections[ALIAS].close()
    del connections[ALIAS]
    del connections.settings[ALIAS]
    if server.process is not None:
        server.resume()


def catch_up(standby: Standby) -> None:
    """Wait until the standby contains everything that is committed now."""
    position, _ = current_position()
    # `position` can lie behind the header of a page of the write-ahead log that has no record yet. The standby reaches such a position only
    # after one more record, so write one.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_logical_emit_message(true, '', '')")
    eventually(lambda: standby.query(f"SELECT pg_last_wal_replay_lsn() >= '{position}'") == [(True,)], seconds=60)


def new_user(people: Connection, nickname: str) -> User:
    return create_user(tenant_id=people.tenant_id, connection=people, nickname=nickname, email=f"{nickname}@example.com")


def list_of_users(browser: Client) -> str:
    return browser.get(reverse("admin:identity_user_changelist")).content.decode()


@pytest.fixture
def paused(standby: Standby, database_connection: Connection) -> Standby:
    """A standby that is paused, so that it contains the user `early`, but not the user `late`."""
    new_user(database_connection, "early")
    catch_up(standby)
    standby.pause()
    new_user(database_connection, "late")
    return standby


def test_a_list_shows_old_rows_with_their_age_and_only_rows_of_its_tenant(paused: Standby, tenant: Tenant) -> None:
    page = list_of_users(browser_of(new_staff(tenant)))

    assert ("early@example.com" in page, "late@example.com" in page) == (True, False)
    assert "As of " in page
    foreign = list_of_users(browser_of(new_staff(new_tenant())))
    assert "early@example.com" not in foreign


def test_the_management_interface_and_the_stream_show_new_rows_without_the_replica(
    paused: Standby, tenant: Tenant, database_connection: Connection
) -> None:
    number_tenant(tenant.pk)
    database = connection.settings_dict["NAME"]
    connections[ALIAS].close()
    variables = {"DATABASE_REPLICA_URL": paused.url(database), "REPLICA_MAX_LAG_SECONDS": "3600", "EVENTS_NUMBERER_ENABLED": "1"}
    with web_process("uvicorn", **variables) as web:
        target = make_target(tenant, web.address)
        with target.subscribe() as stream:
            stream.opened()
            later = new_user(database_connection, "later")
            [event] = stream.events(1)
        token = target.token(scopes=("read:users",))
        request = Request(f"http://{web.address[0]}:{web.address[1]}/api/v2/users/{later.user_id.replace('|', '%7C')}")
        request.add_header("Host", target.host)
        request.add_header("Authorization", f"Bearer {token}")
        with urlopen(request, timeout=30) as answer:
            found = json.load(answer)
        # A process that had read from the replica would still be connected to it, because a pool keeps its connections open.
        readers = paused.query(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'")  # noqa: S608  (a constant)

    assert later.user_id in event.data
    assert found["user_id"] == later.user_id
    assert readers == [(0,)]


def test_a_list_shows_new_rows_if_the_replica_is_too_far_behind(paused: Standby, tenant: Tenant, settings: Settings) -> None:
    settings.REPLICA_MAX_LAG_SECONDS = 0.0

    page = list_of_users(browser_of(new_staff(tenant)))

    assert "late@example.com" in page
    assert "As of " not in page


def test_a_list_shows_new_rows_if_the_replica_is_down_or_disconnects_later(standby: Standby, database_connection: Connection) -> None:
    browser = browser_of(new_staff(database_connection.tenant))
    new_user(database_connection, "early")
    catch_up(standby)
    assert "As of " in list_of_users(browser)
    standby.stop()
    new_user(database_connection, "late")

    first, second = list_of_users(browser), list_of_users(browser)

    assert "late@example.com" in first
    assert "late@example.com" in second
    assert "As of " not in first + second


def test_staff_see_their_own_change_immediately(paused: Standby, tenant: Tenant) -> None:
    browser = browser_of(new_staff(tenant))
    assert "late@example.com" not in list_of_users(browser)

    browser.post(reverse("admin:identity_user_changelist"), {"action": ""})

    assert "late@example.com" in list_of_users(browser)


def test_an_export_never_misses_a_change_before_its_cursor(paused: Standby, tenant: Tenant) -> None:
    found = [user["nickname"] for user in exported_users(tenant_id=tenant.pk)]

    assert found == ["early", "late"]


def test_a_page_of_an_export_is_read_on_a_replica_that_has_every_commit(standby: Standby, database_connection: Connection) -> None:
    new_user(database_connection, "early")
    position, _ = current_position()
    catch_up(standby)

    with CaptureQueriesContext(connections[ALIAS]) as queries:
        page = page_of(User.objects.of(database_connection.tenant_id), position=position)

    assert [user.nickname for user in page] == ["early"]
    assert any("identity_user" in query["sql"] for query in queries)


def test_no_database_session_on_the_replica_can_write(standby: Standby) -> None:
    with connections[ALIAS].cursor() as cursor:
        cursor.execute("SHOW default_transaction_read_only")
        assert cursor.fetchone() == ("on",)


def test_a_promoted_replica_is_not_used(database_connection: Connection, standby: Standby) -> None:
    # A promoted replica is a primary. Its database would accept the statements.
    connections[ALIAS].close()
    connections[ALIAS].settings_dict.update(replica_settings(database_url(), pool_size=0))

    assert replica.reading_source() == replica.PRIMARY
