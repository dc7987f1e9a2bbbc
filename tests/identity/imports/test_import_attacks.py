"""Import files that attack the service. The service refuses the file or the row, no worker fails, and no user is changed."""

from __future__ import annotations

import gzip
import io
import json
import resource
from typing import Any

import pytest

from identity.imports import imports
from identity.imports.import_file import BadImportFile, read_rows
from identity.models import Connection, JobError, PasswordCredential, Tenant, User
from identity.services import users
from identity.services.jobs import run_job

VICTIM = "victim@example.test"


def imported(tenant: Tenant, connection: Connection, content: bytes, *, upsert: bool = False) -> Any:
    """Import a file with this content, and return the job after its last chunk."""
    job = imports.start_import(tenant_id=tenant.pk, connection_id=connection.pk, rows=read_rows(io.BytesIO(content)), upsert=upsert)
    for _ in range(20):
        if run_job(job.pk):
            break
    job.refresh_from_db()
    return job


@pytest.fixture
def victim(tenant: Tenant, database_connection: Connection) -> User:
    return users.create_user(
        tenant_id=tenant.pk, connection=database_connection, email=VICTIM, password="a-long-password-of-hers", name="Victim"
    )


def stored_password(user: User) -> list[Any]:
    return list(PasswordCredential.objects.filter(user=user).values())


FILES = {
    "UTF-16": json.dumps([{"email": "a@example.test"}]).encode("utf-16"),
    "UTF-32": json.dumps([{"email": "a@example.test"}]).encode("utf-32"),
    "Latin-1": '[{"email": "a@example.test", "name": "Zo\xeb"}]'.encode("latin-1"),
    "overlong UTF-8": b'[{"email": "a\xc0\x80@example.test"}]',
    "surrogates in UTF-8": b'[{"name": "\xed\xa0\x80"}]',
    "compressed": gzip.compress(b'[{"email": "a@example.test"}]'),
    "bomb": gzip.compress(b"[" + b" " * 50_000_000 + b"]"),
    "deep array": b"[" * 1_000_000,
    "deep object": b'{"a":' * 1_000_000,
    "deep row": b'[{"user_metadata": ' + b"[" * 250 + b"]" * 250 + b"}]",
    "digits": b'[{"user_metadata": {"n": ' + b"9" * 1_000_000 + b"}}]",
    "NaN": b'[{"user_metadata": {"n": NaN}}]',
    "Infinity": b'[{"user_metadata": {"n": -Infinity}}]',
    "pickle": b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94.",
    "CSV": b"email,name\na@example.test,Ada\n",
    "comments": b'[/* a */ {"email": "a@example.test"}]',
    "single quotes": b"[{'email': 'a@example.test'}]",
    "NUL between": b'[\x00{"email": "a@example.test"}]',
    "raw NUL": b'[{"email": "a\x00@example.test"}]',
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_the_refusal_of_a_hostile_file_needs_little_memory(content: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadImportFile):
        list(read_rows(io.BytesIO(content)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 40 * 1024


ROWS: list[Any] = [
    {"email": VICTIM, "user_metadata": {"n": float("1e308") * 10}},
    {"email": [VICTIM]},
    {"email": {"$ne": ""}},
    {"email": VICTIM, "user_id": ["x"]},
    {"email": VICTIM, "blocked": "false"},
    {"email": VICTIM, "blocked": 0},
    {"email": VICTIM, "email_verified": "true"},
    {"email": VICTIM, "email_verified": 1},
    {"email": VICTIM, "user_metadata": []},
    {"email": VICTIM, "user_metadata": "{}"},
    {"email": VICTIM, "user_metadata": {"n": 2**64}},
    {"email": VICTIM, "user_metadata": {"n": 10**3000}},
    {"email": VICTIM, "user_metadata": {"a\x00": 1}},
    {"email": VICTIM, "user_metadata": {"a": "\ud800"}},
    {"email": VICTIM, "app_metadata": {"__tenant": "other"}},
    {"email": VICTIM, "password_hash": {"$ne": ""}},
    {"email": VICTIM, "password_hash": "$argon2id$v=19$m=4294967295,t=4294967295,p=1$YWFhYWFhYWE$YWFhYWFhYWFhYWFhYWFhYQ"},
    {"email": VICTIM, "password_hash": "$2b$31$" + "a" * 53},
    {"email": VICTIM, "custom_password_hash": {"algorithm": "scrypt", "hash": {"value": "aa"}, "keylen": 2**40, "cost": 2**40}},
    {"email": VICTIM, "mfa_factors": {"totp": "x"}},
    {"email": VICTIM, "tenant_id": "other", "connection_id": "other"},
    {"email": VICTIM, "id": 1, "pk": 1},
    {"email": VICTIM, "name": "x" * 1_000_000},
    {"email": VICTIM, "picture": "javascript:alert(1)"},
    {},
    [],
    None,
    5,
    VICTIM,
    True,
]


@pytest.mark.parametrize("form", ["array", "lines"])
def test_hostile_rows_are_refused_one_by_one_and_change_no_user(
    tenant: Tenant, database_connection: Connection, victim: User, form: str
) -> None:
    texts = [json.dumps(row).replace("Infinity", "1e999") for row in ROWS]
    # An object with two members of the same name. Some JSON readers use the first value, and others use the last value.
    texts.append('{"email": "first@example.test", "email": 5}')
    content = f"[{','.join(texts)}]" if form == "array" else "\n".join(texts)
    before = User.objects.of(tenant.pk).filter(pk=victim.pk).values().get(), stored_password(victim)
    job = imported(tenant, database_connection, content.encode(), upsert=True)
    assert (job.status, job.summary["failed"]) == ("completed", len(texts)), job.summary
    assert (User.objects.of(tenant.pk).filter(pk=victim.pk).values().get(), stored_password(victim)) == before
    assert User.objects.of(tenant.pk).count() == 1
    assert JobError.objects.filter(job=job).count() == len(texts)


def test_the_last_value_of_a_duplicate_name_is_checked_and_stored(tenant: Tenant, database_connection: Connection) -> None:
    content = b'[{"email": "first@example.test", "email": "last@example.test", "blocked": "x", "blocked": true}]'
    assert imported(tenant, database_connection, content).summary["inserted"] == 1
    made = User.objects.of(tenant.pk).get()
    assert (made.email, made.blocked) == ("last@example.test", True)
