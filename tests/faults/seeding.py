"""A program that fills a private database with tenants and with the ledger in which writers record their commits. Each tenant has
shared users, a shared group, and the token of a subscriber. Prints one JSON document. Run with `python -m tests.faults.seeding`.
"""

from __future__ import annotations

import json
import secrets
import sys
from typing import Any

import django

SHARED_USERS = 3


def main() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS fault_ledger (id text PRIMARY KEY, tenant_id text NOT NULL, committed boolean NOT NULL)")
    print(json.dumps([_tenant() for _ in range(int(sys.argv[1]))]))  # noqa: T201  (it is what this program is for)


def _tenant() -> dict[str, Any]:
    from django.conf import settings

    from events.log.numbering import number_tenant
    from identity.services.connections import create_connection
    from identity.services.groups import create_group
    from identity.services.tenants import create_tenant
    from identity.services.users import create_user
    from tests.conformance.target import make_target

    name = f"f-{secrets.token_hex(5)}"
    tenant = create_tenant(tenant_id=name, name=name, host=f"{name}.example.test")
    target = make_target(tenant, ("", 0))
    connection = create_connection(tenant_id=name, name="people", strategy=settings.DATABASE_STRATEGY)
    users = [
        create_user(tenant_id=name, connection=connection, nickname=f"shared {number}", email=f"shared{number}@example.test")
        for number in range(SHARED_USERS)
    ]
    group = create_group(tenant_id=name, name="shared")
    batch = number_tenant(name)
    assert batch is not None
    return {
        "id": name,
        "host": target.host,
        "token": target.token(seconds=86_400, scopes=("read:events", "read:users", "update:users")),
        "connection": connection.pk,
        "users": [user.user_id for user in users],
        "group": group.pk,
        "base": batch.head_position,
    }


if __name__ == "__main__":
    django.setup()
    main()
