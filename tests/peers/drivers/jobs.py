"""Starts imports, exports and verification mails with the unmodified Python client. Runs in a separate Python environment.

The test runs the jobs while the driver polls. The driver polls until a job has ended.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import time
import urllib.request
from typing import Any

from auth0.management.client import Auth0  # type: ignore[import-untyped]  # not installed where types are checked

USERS = [{"email": "a@example.test"}, {"email": "b@example.test", "given_name": "B"}, {"email": 5}]


def ended(client: Any, job_id: str) -> Any:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        job = client.jobs.get(job_id)
        if job.status in ("completed", "failed"):
            return job
        time.sleep(0.1)
    raise TimeoutError(job_id)


def imports(client: Any, seen: dict[str, Any], people: str) -> None:
    file = io.BytesIO(json.dumps(USERS).encode())
    started = client.jobs.users_imports.create(
        users=file, connection_id=people, upsert=True, external_id="mine", send_completion_email=False
    )
    seen["started"] = [started.type, started.status, started.connection_id == people, started.external_id]
    job = ended(client, started.id)
    seen["summary"] = [job.summary.total, job.summary.inserted, job.summary.updated, job.summary.failed, job.percentage_done]
    # Send the file with another file name and content type, as other client libraries do.
    named = ("users.jsonl", b'{"email": "a@example.test", "given_name": "A"}\n', "application/json")
    again = client.jobs.users_imports.create(users=named, connection_id=people, upsert=True, send_completion_email=False)
    seen["updated"] = ended(client, again.id).summary.updated
    seen["errors"] = [[row.user, [error.code for error in row.errors]] for row in client.jobs.errors.get(started.id)]
    seen["no errors"] = client.jobs.errors.get(again.id)


def exports(client: Any, seen: dict[str, Any], people: str) -> None:
    fields = [{"name": "email"}, {"name": "identities[0].connection", "export_as": "provider"}]
    started = client.jobs.users_exports.create(connection_id=people, format="csv", limit=5, fields=fields)
    job = ended(client, started.id)
    with urllib.request.urlopen(job.location, timeout=20) as answer:
        seen["table"] = gzip.decompress(answer.read()).decode().splitlines()
    with urllib.request.urlopen(client.jobs.get(job.id).location, timeout=20) as answer:
        seen["again"] = gzip.decompress(answer.read()).decode().splitlines() == seen["table"]


def mails(client: Any, seen: dict[str, Any]) -> None:
    user = client.users.list_users_by_email(email="a@example.test")[0]
    started = client.jobs.verification_email.create(user_id=user.user_id)
    seen["mail"] = [started.type, ended(client, started.id).status]


def main(base_url: str, token: str) -> None:
    client = Auth0(base_url=base_url, token=token)
    seen: dict[str, Any] = {}
    people = next(found.id for found in client.connections.list() if found.name == "people")
    imports(client, seen, people)
    exports(client, seen, people)
    mails(client, seen)
    print(json.dumps(seen))  # noqa: T201 (the test reads this output)


if __name__ == "__main__":
    main(*sys.argv[1:])
