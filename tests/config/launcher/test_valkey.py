"""The launcher's Valkey server keeps its data across a restart, is reachable only by its owner, and starts despite a stale pid file."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from config.launcher import valkey
from config.launcher.processes import Process, wait_until_ready


@contextmanager
def running(place: Path) -> Iterator[redis.Redis]:
    log = place / "log"
    with log.open("ab") as output:
        process = Process.start(valkey.prepare(place, durable=True), output=output)
    try:
        wait_until_ready(process, log=log)
        with redis.from_url(valkey.url_of(place)) as client:
            yield client
    finally:
        process.stop()


def test_written_data_is_kept_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.rpush("queue", "a nudge")
    with running(tmp_path) as client:
        assert client.lrange("queue", 0, -1) == [b"a nudge"]


def test_only_the_owner_can_use_the_socket_and_the_server_does_not_listen_on_tcp(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        assert client.config_get("port") == {"port": "0"}
        assert stat.S_IMODE((tmp_path / "run" / "redis").stat().st_mode) == 0o700


def test_a_stale_pid_file_does_not_prevent_a_start(tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir(mode=0o700)
    (tmp_path / "redis" / "server.pid").write_text("1\n")

    with running(tmp_path) as client:
        assert client.ping()
