"""Messages of an attacker who can write to Redis. They run no code and reach no other tenant, and the worker continues."""

from __future__ import annotations

import base64
import json
import os
import pickle
import secrets
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from events.models import EventStream
from identity.exports.exports import start_export
from identity.models import Connection, Job, Tenant
from identity.tasks import RUN_JOB
from provisioning.engine import nudges
from tests.deadlines import eventually
from tests.factories.admin import new_tenant
from tests.faults.conftest import RedisServer
from tests.faults.worker import Worker
from tests.provisioning.engine.logs import make_stream


class Touch:
    """An object that creates a directory when a process unpickles it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self._path),))


def message(
    task: Any, arguments: Any = (), *, body: bytes | None = None, kind: str = "application/json", headers: Any = None, **more: Any
) -> bytes:
    """A message in Celery's format, with the changes of a test."""
    name = secrets.token_hex(8)
    raw = json.dumps([list(arguments), {}, {}]).encode() if body is None else body
    own = {"task": task, "id": name, "root_id": name, "lang": "py", "argsrepr": "()", "kwargsrepr": "{}", "retries": 0}
    information = {"exchange": "", "routing_key": "work"}
    properties = {"delivery_mode": 2, "delivery_info": information, "priority": 0, "body_encoding": "base64", "delivery_tag": name}
    whole = {
        "body": base64.b64encode(raw).decode(),
        "content-encoding": "utf-8",
        "content-type": kind,
        "headers": {**own, **(headers or {})},
        "properties": {**properties, "correlation_id": name},
    }
    return json.dumps({**whole, **more}).encode()


def forgeries(marker: Path) -> list[bytes]:
    """Messages that no process of the service sends."""
    code = pickle.dumps(Touch(marker))
    command = f"__import__('os').mkdir({str(marker)!r})"
    yaml = f"!!python/object/apply:os.mkdir ['{marker}']".encode()
    bomb = zlib.compress(b"[" + b" " * 200_000_000 + b"[], {}, {}]", 9)
    good = json.dumps([[], {}, {}]).encode()
    return [
        *(message("os.mkdir", [str(marker)]), message("builtins.eval", [command]), message("celery.nothing"), message("")),
        *(message(None), message(5), message(["identity.prune_jobs"]), message({"a": 1}), message("x" * 100_000)),
        *(
            message("identity.prune_jobs", body=code, kind=kind)
            for kind in ("application/x-python-serialize", "pickle", "application/json")
        ),
        message("identity.prune_jobs", body=yaml, kind="application/x-yaml"),
        message("identity.prune_jobs", body=b"\x81\xa1a\x01", kind="application/x-msgpack"),
        message("identity.prune_jobs", body=code, kind="", **{"content-encoding": "binary"}),
        message("identity.prune_jobs", body=bomb, headers={"compression": "application/x-gzip"}),
        message("identity.prune_jobs", body=good, headers={"compression": "no-such-kind"}),
        *(
            message("identity.prune_jobs", body=body)
            for body in (b"", b"null", b"5", b"{}", b"[[]]", b"[1, 2, 3]", b"[" * 50_000, b"\xff\xfe")
        ),
        message("identity.prune_jobs", body=json.dumps([["x"] * 50_000, {}, {}]).encode()),
        message("identity.prune_jobs", [], headers={"eta": "never", "expires": "never", "timelimit": "x", "retries": "x", "group": 5}),
        message("identity.prune_jobs", body=json.dumps([[], {}, {"callbacks": [{"task": "os.mkdir", "args": [str(marker)]}]}]).encode()),
        message("celery.map", [{"task": "os.mkdir"}, [[str(marker)]]]),
        message(RUN_JOB, ["job_of_nobody"]),
        message(RUN_JOB, [{"$ne": None}]),
        message(RUN_JOB, ["' OR 'a'='a"]),
        message(RUN_JOB, ["\x00"]),
        message(RUN_JOB, ["x" * 5_000_000]),
        message(nudges.ALERT, ["1e400"]),
        message(nudges.DELIVER, [["a"], {"b": 1}]),
        message("identity.prune_jobs", properties={}),
        json.dumps({**json.loads(message("identity.prune_jobs")), "properties": None, "headers": None}).encode(),
        *(b"", b"no json", b"\x80\x04}", b"null", b"5", b"[]", b"{}", b'{"body": 5}', b"[" * 100_000, code),
    ]


def resident_bytes(worker: Worker) -> int:
    pids = [worker.process.pid, *worker.children()]
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids) * os.sysconf("SC_PAGE_SIZE")


def finishes_a_job(redis_server: RedisServer, directory: Path, tenant: Tenant) -> Callable[[], bool]:
    """Send a valid message. Return a function that reports whether a worker has processed the message."""
    job = start_export(tenant_id=tenant.pk)
    redis_server.client.lpush(f"{directory.name}:work", message(RUN_JOB, [job.pk]))

    def is_done() -> bool:
        job.refresh_from_db()
        return job.status == Job.Status.COMPLETED

    return is_done


def test_forged_messages_run_no_code_and_the_worker_continues(
    tenant: Tenant, database_connection: Connection, redis_server: RedisServer, directory: Path, start_worker: Callable[..., Worker]
) -> None:
    marker = directory / "marker"
    worker = start_worker(concurrency=1)
    before = resident_bytes(worker)
    for forged in forgeries(marker):
        redis_server.client.lpush(f"{directory.name}:work", forged)
    eventually(lambda: redis_server.client.llen(f"{directory.name}:work") == 0 or worker.process.poll() is not None, seconds=60)
    assert worker.process.poll() is None, worker.log[-3000:]
    eventually(finishes_a_job(redis_server, directory, tenant), seconds=60)
    assert not marker.exists()
    assert resident_bytes(worker) < before + 100 * 1024 * 1024


@pytest.mark.parametrize("command", ["shutdown", "cancel_consumer"])
def test_a_remote_command_is_ignored(
    tenant: Tenant, redis_server: RedisServer, directory: Path, start_worker: Callable[..., Worker], command: str
) -> None:
    worker = start_worker(concurrency=1)
    arguments = {"n": 1, "queue": "work", "task_id": "x", "terminate": True}
    body = base64.b64encode(json.dumps({"method": command, "arguments": arguments, "destination": None}).encode()).decode()
    properties = {
        "delivery_mode": 2,
        "delivery_info": {"exchange": "celery.pidbox", "routing_key": ""},
        "body_encoding": "base64",
        "delivery_tag": "x",
    }
    sent = {"body": body, "content-encoding": "utf-8", "content-type": "application/json", "headers": {}, "properties": properties}
    channels = [f"{directory.name}:/{database}.celery.pidbox" for database in range(2)] + [
        f"/{database}.celery.pidbox" for database in range(2)
    ]
    assert sum(int(str(redis_server.client.publish(channel, json.dumps(sent)))) for channel in channels) == 0, (
        "the worker listens for commands"
    )
    eventually(finishes_a_job(redis_server, directory, tenant), seconds=60)
    assert worker.process.poll() is None


def test_a_message_about_a_stream_of_another_tenant_does_not_change_the_stream(
    tenant: Tenant, redis_server: RedisServer, directory: Path, start_worker: Callable[..., Worker]
) -> None:
    other = new_tenant()
    stream = make_stream(other)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE events_eventstream SET held_since = now(), held_reason = 'x' WHERE id = %s", [stream.pk])
    worker = start_worker(concurrency=1)
    redis_server.client.lpush(f"{directory.name}:work", message(nudges.PROBE, [stream.pk, tenant.pk]))
    eventually(finishes_a_job(redis_server, directory, tenant), seconds=60)
    assert EventStream.objects.of(other.pk).get(pk=stream.pk).held_since is not None
    assert worker.process.poll() is None
