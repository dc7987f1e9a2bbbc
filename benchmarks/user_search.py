"""Measures searches in a tenant with a million users, and the cost of the indexes for writes.

The searches return pages with totals, as client libraries request them.

Run with `.venv/bin/python -m benchmarks user_search [--users 1000000]`. It creates another database on the server of `DATABASE_URL`, fills
it without the recorder, and drops it at the end. Prints the median and the minimum of 20 runs in milliseconds. A run begins with the
parameters of a search, and ends with the documents of 50 users. Each hostile query, which should be refused or time out, is measured once.
The last lines show what a write costs without and with the indexes.
"""

from __future__ import annotations

import argparse
import itertools
import os
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.development")
os.environ["EVENTS_NUMBERER_ENABLED"] = "0"

import django

django.setup()

import psycopg  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.http import QueryDict  # noqa: E402
from psycopg import sql  # noqa: E402

from foundation.api.paging import Listing, answer_list  # noqa: E402
from foundation.api.refusals import Refusal  # noqa: E402
from foundation.tenancy import tenant_bound  # noqa: E402
from identity.api.user_schemas import USER_FIELDS  # noqa: E402
from identity.api.user_search import asked_search  # noqa: E402
from identity.api.users import listed_user, with_identities  # noqa: E402
from identity.models import User  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 20
QUERIES = (
    'email:"{email}"',
    "email:*@corp.com",
    "email.domain:corp.com",
    "name:jo*",
    "user_id:database|{identifier}",
    "app_metadata.plan:gold",
    "app_metadata.plan:platinum",
    "last_login:[2026-01-01 TO *]",
    "last_login:[2026-11-21 TO *]",
    'identities.connection:"c" AND NOT blocked:true',
    "identities.connection:rare AND NOT blocked:true",
    "_exists_:phone_number",
    "name:*quill*",
    "NOT blocked:true",
    "quill*",
    "app_metadata.plan:nowhere",
)
SORTED = (("name:jo*", "last_login:-1"), ("app_metadata.plan:gold", "email:1"), ("", "last_login:-1"), ("name:jo*", "name:1"))
NEW_INDEXES = (
    "identity_user_by_text",
    "identity_user_by_metadata",
    "identity_user_by_last_login",
    "identity_user_by_email_end",
    "identity_user_by_phone",
)
HOSTILE = (
    "app_metadata.*:x",
    "name:*a*",
    "(" * 500 + "name:x" + ")" * 500,
    " OR ".join(f"name:*abc{n}*" for n in range(200)),
    " OR ".join(f"app_metadata.k{n}:*{n:03d}x*" for n in range(100)),
    "_exists_:app_metadata.nowhere",
    "picture:*nothing*here*",
    "NOT (" + " OR ".join(f"user_id:*{n:03x}{n:03x}*" for n in range(60)) + ")",
)
FILL = """
INSERT INTO identity_user (tenant_id, user_id, connection_id, email, email_verified, phone_number, phone_verified, name, nickname,
  given_name, family_name, blocked, user_metadata, app_metadata, multifactor, last_login, logins_count, created_at, updated_at)
SELECT %(tenant)s, 'database|' || md5(n::text || %(tenant)s),
  CASE WHEN n %% 50 = 7 THEN %(c)s WHEN n %% 20000 = 11 THEN %(rare)s ELSE %(people)s END,
  lower(given || '.' || family || n || '@' || CASE WHEN n %% 500 = 3 THEN 'corp.com' ELSE 'mail' || n %% 300 || '.example.com' END),
  n %% 3 <> 0, CASE WHEN n %% 1000 = 5 THEN '+49' || 1000000000 + n END, false,
  given || ' ' || family, lower(given || '.' || family || n),
  given, family,
  CASE WHEN n %% 100 = 1 THEN true WHEN n %% 50 = 2 THEN false END, jsonb_build_object('theme', n %% 7, 'note', md5(n::text)),
  jsonb_build_object('plan', CASE WHEN n %% 40000 = 9 THEN 'platinum'
    WHEN n %% 10 = 0 THEN 'gold' WHEN n %% 10 < 3 THEN 'silver' ELSE 'free' END,
    'seats', n %% 90, 'roles', jsonb_build_array('reader', CASE WHEN n %% 70 = 0 THEN 'owner' ELSE 'member' END)),
  '[]', CASE WHEN n %% 5 > 1 THEN timestamptz '2026-11-22' - ((n * 7919::bigint) %% 94608000) * interval '1 second' END, n %% 9,
  timestamptz '2020-01-01' + n * interval '1 minute', now()
FROM (SELECT n,
  (ARRAY['Ada','Bea','Carl','Dan','Eve','Finn','Gil','Hana','Ivo','Jane','Joan','Kim','Lea','Max','Nora','Olaf','Pia','Quinn','Ria','Sam',
         'Tea','Ulf','Vera','Walt','Xenia','Yann','Zoe','Alma','Bruno','Cleo'])[1 + (n * 31) %% 30] AS given,
  CASE WHEN n %% 5000 = 17 THEN 'Quillfeather'
    ELSE initcap(substr(translate(md5((n %% 4000)::text), '0123456789', 'ghijklmnop'), 1, 7)) END AS family
  FROM generate_series(1, %(count)s) AS n) AS drawn
"""


def main(count: int) -> None:
    """Create the database, run the measurement in it, drop it."""
    address = urlsplit(os.environ["DATABASE_URL"])
    name = f"bench_search_{secrets.token_hex(6)}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            environment = {**os.environ, "DATABASE_URL": urlunsplit(address._replace(path=f"/{name}")), "BENCH_INSIDE": "1"}
            subprocess.run([sys.executable, "-m", "benchmarks.user_search", "--users", str(count)], cwd=ROOT, env=environment, check=True)
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def measure(count: int) -> None:
    """Fill the database, then measure writes without the indexes, searches, and writes with the indexes."""
    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexname, indexdef FROM pg_indexes WHERE indexname = ANY(%s)", [NEW_INDEXES])
        definitions = dict(cursor.fetchall())
        for name in definitions:
            cursor.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    tenants = [_filled(f"bench-{letter}", size) for letter, size in (("a", count), ("b", count // 20), ("c", count // 20))]
    save, login = _writes(tenants[0])
    before = {"save": _milliseconds(save, 200), "login": _milliseconds(login, 200)}
    started = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0; SET session_replication_role = origin")
        for definition in definitions.values():
            cursor.execute(definition)
    print(f"indexes for {count * 11 // 10:,} users built in {time.perf_counter() - started:.0f} s")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE identity_user")
        cursor.execute(
            "SELECT relname, pg_size_pretty(pg_relation_size(oid)) FROM pg_class WHERE relname LIKE 'identity_user%' AND relkind = 'i'"
        )
        print(", ".join(f"{name} {size}" for name, size in cursor.fetchall()))
    with tenant_bound(tenants[0]):
        _report(tenants[0])
    after = {"save": _milliseconds(save, 200), "login": _milliseconds(login, 200)}
    for name in before:
        print(f"{name} without recording: {before[name]:.2f} ms without the indexes, {after[name]:.2f} ms with them")


def _filled(tenant_id: str, count: int) -> str:
    with connection.cursor() as cursor:
        # Fills the tables without triggers or recorder, because this benchmark does not measure the recording of a million events.
        cursor.execute("SET session_replication_role = replica; SET statement_timeout = 0")
        cursor.execute(
            "INSERT INTO identity_tenant (id, name, status, created_at, updated_at) VALUES (%s, %s, 'active', now(), now())",
            [tenant_id, tenant_id],
        )
        keys = {}
        for name in ("people", "c", "rare"):
            keys[name] = f"con_{tenant_id.replace('-', '')}{name}"
            cursor.execute(
                "INSERT INTO identity_connection (id, tenant_id, name, strategy, display_name, options, sealed_options, realms,"
                " enabled_clients, is_domain_connection, metadata, created_at, updated_at)"
                " VALUES (%s, %s, %s, 'database', '', '{}', '{}', '[]', '[]', false, '{}', now(), now())",
                [keys[name], tenant_id, name],
            )
        cursor.execute(FILL, {"tenant": tenant_id, "count": count, **keys})
        cursor.execute("RESET session_replication_role; RESET statement_timeout")
    return tenant_id


def _report(tenant_id: str) -> None:
    some = User.objects.of(tenant_id).order_by("-created_at")[1000]
    print(f"\n{'query':58} {'sort':14} {'median ms':>10} {'fastest':>8} {'users':>8}")
    for text, sort in (*((query, "") for query in QUERIES), *SORTED):
        query = text.format(email=some.email, identifier=some.identifier)
        _line(tenant_id, query, sort, ROUNDS)
    print("\nhostile queries, once each")
    for query in HOSTILE:
        _line(tenant_id, query, "", 1)


def _line(tenant_id: str, query: str, sort: str, rounds: int) -> None:
    answers: list[int] = []

    def ask() -> None:
        answers.append(_asked(tenant_id, query, sort))

    started = time.perf_counter()
    try:
        ask()
        taken = _times(ask, rounds)
        took = f"{statistics.median(taken):10.1f} {min(taken):8.1f} {answers[-1]:8,}"
    except Refusal as refusal:
        took = f"{(time.perf_counter() - started) * 1000:10.1f} {refusal.status}: {refusal.message[:70]}"
    print(f"{query[:58]:58} {sort:14} {took}", flush=True)


def _asked(tenant_id: str, text: str, sort: str) -> int:
    query = QueryDict(mutable=True)
    query.update({"include_totals": "true", "page": "0", "per_page": "50", "q": text, "sort": sort})
    asked = asked_search(query, tenant_id)
    with asked.reading() as reading:
        answer = answer_list(
            with_identities(User.objects.of(tenant_id)),
            query,
            Listing("users", USER_FIELDS),
            listed_user,
            order=asked.order,
            reading=reading,
        )
    return int(answer["total"]) if isinstance(answer, dict) else 0


def _writes(tenant_id: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return the statements that store a changed profile and a login, without recording."""
    keys = itertools.cycle(User.objects.of(tenant_id).order_by("pk").values_list("pk", flat=True)[:10_000:7])

    def write(change: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            cursor.execute(f"UPDATE identity_user SET {change}, updated_at = now() WHERE id = %s", [next(keys)])  # noqa: S608  # one of the two texts below

    return (
        lambda: write("name = 'Ada ' || md5(random()::text), app_metadata = jsonb_build_object('plan', md5(random()::text))"),
        lambda: write("last_login = now(), logins_count = logins_count + 1"),
    )


def _milliseconds(work: Callable[[], None], rounds: int) -> float:
    return statistics.median(_times(work, rounds))


def _times(work: Callable[[], None], rounds: int) -> list[float]:
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1000)
    return taken


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.user_search")
    parser.add_argument("--users", type=int, default=1_000_000)
    wanted = parser.parse_args().users
    if os.environ.get("BENCH_INSIDE"):
        measure(wanted)
    else:
        main(wanted)
