"""How fast users are imported, recorded and numbered, whether the rate holds as the table grows, and what memory it takes.

Run with `.venv/bin/python -m benchmarks.user_import [users]` against a migrated database (`DATABASE_URL`). It makes a tenant of its
own and leaves it behind.
"""

from __future__ import annotations

import os
import resource
import secrets
import sys
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.development")
os.environ["EVENTS_NUMBERER_ENABLED"] = "0"

import django

django.setup()

from events.numbering import number_tenant, open_connection  # noqa: E402
from identity.services import connections, tenants  # noqa: E402
from identity.services.imports import CHUNK_ROWS, start_import  # noqa: E402
from identity.services.jobs import run_next_chunk  # noqa: E402


def main(count: int) -> None:
    tenant_id = f"bench-{secrets.token_hex(6)}"
    tenants.create_tenant(tenant_id=tenant_id, name="bench", host=f"{tenant_id}.example.test")
    people = connections.create_connection(tenant_id=tenant_id, name="people", strategy="database")
    rows = ({"email": f"user{number}@example.test", "given_name": "Ada", "app_metadata": {"plan": "x" * 200}} for number in range(count))
    job = start_import(tenant_id=tenant_id, connection_id=people.pk, rows=rows)
    times, memory = [], []
    with open_connection() as database:
        while True:
            started = time.perf_counter()
            if not run_next_chunk(job.pk):
                break
            number_tenant(tenant_id, database)
            times.append(time.perf_counter() - started)
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    quarter = max(len(times) // 4, 1)
    first, last = (CHUNK_ROWS * quarter / sum(part) for part in (times[:quarter], times[-quarter:]))
    print(f"{count:,} users recorded and numbered at {count / sum(times):,.0f} users/s")
    print(f"first quarter {first:,.0f}/s, last quarter {last:,.0f}/s; peak memory {memory[quarter - 1]} MiB, then {memory[-1]} MiB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
