"""Checks before a start: each refusal is one sentence without passwords."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from config.launcher.options import Options
from config.launcher.preflight import CannotStart, check
from tests.ports import free_port


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(
        data_dir=tmp_path,
        port=free_port(),
        scim_port=free_port(),
        is_tls=False,
        is_detached=False,
        database_url="",
        redis_url="",
        web_server="uvicorn",
        web_processes=1,
    )


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield int(holder.getsockname()[1])


def test_free_ports_and_private_servers_pass_the_checks(options: Options) -> None:
    check(options)


def test_a_used_port_is_reported_with_the_variable_that_changes_it(options: Options, taken_port: int) -> None:
    advice = "stop the program that listens there, or choose another PORT"
    with pytest.raises(CannotStart, match=rf"^Port {taken_port} is taken .*: {advice}\.$"):
        check(replace(options, port=taken_port))
    with pytest.raises(CannotStart, match=r"choose another SCIM_PORT\.$"):
        check(replace(options, scim_port=taken_port))


def test_an_unreachable_database_is_reported_without_its_password(options: Options) -> None:
    url = f"postgresql://someone:hush@127.0.0.1:{free_port()}/identity"
    with pytest.raises(CannotStart, match=r"^DATABASE_URL does not answer at 127\.0\.0\.1:\d+/identity: .*refused") as refusal:
        check(replace(options, database_url=url))
    assert "hush" not in str(refusal.value)


def test_an_unreachable_redis_server_is_reported_without_its_password(options: Options) -> None:
    with pytest.raises(CannotStart, match=r"^REDIS_URL does not answer at 127\.0\.0\.1:\d+/0: .*refused") as refusal:
        check(replace(options, redis_url=f"redis://:hush@127.0.0.1:{free_port()}/0"))
    assert "hush" not in str(refusal.value)


def test_a_url_with_an_unsupported_scheme_is_refused(options: Options) -> None:
    with pytest.raises(CannotStart, match=r"^DATABASE_URL does not answer"):
        check(replace(options, database_url="mysql://host/db"))
    with pytest.raises(CannotStart, match=r"^REDIS_URL does not answer"):
        check(replace(options, redis_url="amqp://host/db"))


def test_daphne_with_several_processes_is_refused(options: Options) -> None:
    with pytest.raises(CannotStart, match=r"^WEB_SERVER=daphne runs one process"):
        check(replace(options, web_server="daphne", web_processes=2))
