"""The cost of recording a save: the same update with trigger and recorder, and without both, measured alternately on one connection.

Run with `.venv/bin/python -m benchmarks.recording [rounds]` against a migrated database (`DATABASE_URL`). Prints medians in
milliseconds and the ratio; it creates a tenant, which stays in the database.
"""

from __future__ import annotations

import os
import secrets
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.development")

import django

django.setup()

from django.db import connection, transaction  # noqa: E402
from django.db.models.signals import post_save  # noqa: E402

from identity.models import User  # noqa: E402
from identity.services import connections, tenants, users  # noqa: E402


def milliseconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def main(rounds: int) -> None:
    tenant_id = f"bench-{secrets.token_hex(6)}"
    tenants.create_tenant(tenant_id=tenant_id, name="bench", host=f"{tenant_id}.example.test")
    people = connections.create_connection(tenant_id=tenant_id, name="people", strategy="database")
    user = users.create_user(tenant_id=tenant_id, connection=people, email="ada@example.test", app_metadata={"plan": "x" * 400})
    receivers = post_save.receivers

    def save(number: int) -> None:
        with transaction.atomic():
            user.name = f"Ada {number}"
            user.save(update_fields=["name", "updated_at"])

    bare, recorded = [], []
    for number in range(rounds):
        recorded.append(milliseconds(partial(save, 2 * number)))
        # The bare save runs without receivers; the triggers are off in this database session.
        post_save.receivers = [entry for entry in receivers if not str(entry[0][0]).startswith("events.saved")]
        post_save.sender_receivers_cache.clear()
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
        bare.append(milliseconds(partial(save, 2 * number + 1)))
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = origin")
        post_save.receivers = receivers
        post_save.sender_receivers_cache.clear()
    ours, theirs = statistics.median(recorded), statistics.median(bare)
    print(f"bare save {theirs:.2f} ms, recorded save {ours:.2f} ms, {rounds} rounds")
    print(f"difference {ours - theirs:.2f} ms, ratio {ours / theirs:.2f}")
    assert User.objects.of(tenant_id).filter(pk=user.pk).exists()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
