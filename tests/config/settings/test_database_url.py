"""The database settings that are derived from `DATABASE_URL`."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.settings.database_url import database_settings, replica_settings
from foundation.database.session_settings import SESSION_SETTINGS


def test_a_url_with_one_server_does_not_require_a_primary() -> None:
    found = database_settings("postgresql://user:p%40ss@db.example:5433/identity", pool_size=0)

    assert (found["HOST"], found["PORT"], found["NAME"], found["USER"], found["PASSWORD"]) == (
        "db.example",
        "5433",
        "identity",
        "user",
        "p@ss",
    )
    assert "target_session_attrs" not in found["OPTIONS"]


def test_several_servers_are_joined_for_libpq_and_only_the_primary_is_used() -> None:
    found = database_settings("postgresql://user@a.example:5432,b.example,[::1]:6432/identity", pool_size=0)

    assert found["HOST"] == "a.example,b.example,::1"
    assert found["PORT"] == "5432,,6432"
    assert found["OPTIONS"]["target_session_attrs"] == "read-write"
    assert found["OPTIONS"]["connect_timeout"] == "3"


def test_options_in_the_url_have_precedence_over_the_defaults() -> None:
    found = database_settings("postgresql://u@a,b/identity?target_session_attrs=primary&connect_timeout=9", pool_size=0)

    assert found["OPTIONS"]["target_session_attrs"] == "primary"
    assert found["OPTIONS"]["connect_timeout"] == "9"
    assert found["PORT"] == ""


def test_a_socket_directory_has_no_keepalive_settings() -> None:
    found = database_settings("postgresql://u@/identity?host=/run/postgresql&port=5433", pool_size=0)

    assert (found["HOST"], found["PORT"]) == ("/run/postgresql", "5433")
    assert "tcp_user_timeout" not in found["OPTIONS"]


def test_a_server_that_stops_answering_without_closing_its_connections_is_detected_within_seconds() -> None:
    options = database_settings("postgresql://u@db.example/identity", pool_size=0)["OPTIONS"]

    assert int(options["tcp_user_timeout"]) <= 15_000
    assert int(options["keepalives_idle"]) + int(options["keepalives_interval"]) * int(options["keepalives_count"]) <= 25


def test_the_pool_has_the_requested_size_and_stops_reconnecting_after_a_few_seconds() -> None:
    pool = database_settings("postgresql://u@db.example/identity", pool_size=7)["OPTIONS"]["pool"]

    assert pool["max_size"] == 7
    assert pool["reconnect_timeout"] <= 5


@pytest.mark.parametrize("url", ["mysql://h/db", "postgresql://user@host", "postgresql://user@host:notaport/db"])
def test_an_unusable_url_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured):
        database_settings(url, pool_size=0)


def test_sessions_on_a_replica_are_read_only_and_prefer_a_standby() -> None:
    options = replica_settings("postgresql://identity@a,b/identity", pool_size=0)["OPTIONS"]

    assert options["target_session_attrs"] == "prefer-standby"
    assert options[SESSION_SETTINGS]["default_transaction_read_only"] == "on"
    assert options[SESSION_SETTINGS]["statement_timeout"] == "30000"


def test_a_connection_to_a_replica_is_attempted_for_two_seconds_at_most() -> None:
    assert replica_settings("postgresql://a/identity", pool_size=0)["OPTIONS"]["connect_timeout"] == "2"


def test_the_error_for_an_unusable_url_of_a_replica_names_the_setting() -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_REPLICA_URL names no database"):
        replica_settings("postgresql://a/", pool_size=0)
