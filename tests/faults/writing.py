"""A writer: a separate process that changes users, groups and organizations at random and records the outcomes."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import django

_RETRY_SECONDS = 0.1
# A change, and its relative frequency.
_WEIGHTS = {
    "create_user": 3,
    "update_user": 4,
    "update_shared_user": 5,
    "delete_user": 1,
    "create_group": 1,
    "update_group": 2,
    "update_shared_group": 2,
    "delete_group": 1,
    "create_organization": 1,
    "update_organization": 2,
    "join_group": 2,
    "leave_group": 2,
}


class _RolledBack(Exception):
    """Raised to roll back a transaction or a savepoint."""


class Writer:
    """Makes one transaction after another on its own rows, and on rows that all writers share."""

    def __init__(self, specification: dict[str, Any], output: IO[str]) -> None:
        from identity.models import Connection

        self.name: str = specification["name"]
        self.tenant: dict[str, Any] = specification["tenant"]
        self.random = random.Random(specification["seed"])
        self.think: float = specification["think"]
        self.output = output
        self.connection = Connection.objects.of(self.tenant["id"]).get(pk=self.tenant["connection"])
        self.users: list[str] = []
        self.groups: list[str] = []
        self.organizations: list[str] = []
        self.joined: set[str] = set()
        self.number = 0
        self.keys: list[str] = []
        self.entities: list[str] = []
        self.after: list[Callable[[], None]] = []

    def run_one(self) -> None:
        """Make one transaction. Most transactions are committed, and some are rolled back or roll back a savepoint."""
        self.number += 1
        self.keys, self.entities, self.after = [], [], []
        operation = f"{self.name}-{self.number}"
        shape = self.random.choices(("kept", "rolled back", "savepoint"), (8, 1, 2))[0]
        started = time.monotonic()
        # The record is written before the first statement, so that a killed writer leaves a record of its transaction.
        self._note({"id": operation, "started": started})
        outcome = self._transaction(operation, shape)
        self._note({"id": operation, "ended": time.monotonic(), "outcome": outcome, "keys": self.keys, "entities": self.entities})
        if outcome == "ok" or (outcome == "unknown" and self._was_committed(operation)):
            for change in self.after:
                change()
        self._pause()

    def _transaction(self, operation: str, shape: str) -> str:
        import psycopg.errors
        from django.db import DatabaseError, InterfaceError, connection, transaction

        try:
            with transaction.atomic():
                self._change(operation)
                if shape == "savepoint":
                    self._rolled_back_part(operation)
                    self._change(f"{operation}b")
                self._pause()
                with connection.cursor() as cursor:
                    cursor.execute("INSERT INTO fault_ledger VALUES (%s, %s, true)", [operation, self.tenant["id"]])
                # Note the expected events before the commit, because the outcome of the commit may stay unknown.
                self._note({"id": operation, "keys": self.keys, "entities": self.entities})
                if shape == "rolled back":
                    raise _RolledBack
        except _RolledBack:
            return "fail"
        except (DatabaseError, InterfaceError) as error:
            connection.close()
            return "fail" if isinstance(error.__cause__, psycopg.errors.DeadlockDetected) else "unknown"
        return "ok"

    def _rolled_back_part(self, operation: str) -> None:
        from django.db import transaction

        kept = len(self.keys), len(self.entities), len(self.after)
        try:
            with transaction.atomic():
                self._change(f"{operation}-undone")
                raise _RolledBack
        except _RolledBack:
            del self.keys[kept[0] :], self.entities[kept[1] :], self.after[kept[2] :]

    def _was_committed(self, operation: str) -> bool:
        """Return whether a transaction with an unknown outcome was committed.

        The transaction inserts its id into the ledger. This function inserts the same id, and waits while the transaction is open. If this
        function inserts the id first, the transaction fails, because the id is taken.
        """
        from django.db import DatabaseError, InterfaceError, connection

        while True:
            try:
                with connection.cursor() as cursor:
                    cursor.execute(
                        "INSERT INTO fault_ledger VALUES (%s, %s, false) ON CONFLICT (id) DO NOTHING", [operation, self.tenant["id"]]
                    )
                    cursor.execute("SELECT committed FROM fault_ledger WHERE id = %s", [operation])
                    return bool(cursor.fetchone()[0])
            except (DatabaseError, InterfaceError):
                connection.close()
                time.sleep(_RETRY_SECONDS)

    def _change(self, mark: str) -> None:
        possible = [name for name in _WEIGHTS if self._can(name)]
        name = self.random.choices(possible, [_WEIGHTS[name] for name in possible])[0]
        getattr(self, f"_{name}")(mark)

    def _can(self, name: str) -> bool:
        # The lists of the writer's own rows do not contain the changes of this transaction, which may still be rolled back. So after the
        # first change, the transaction only creates rows or changes shared rows.
        if self.keys:
            return name.startswith("create") or "shared" in name
        owned = {
            "update_user": self.users,
            "delete_user": [user for user in self.users if user not in self.joined],
            "update_group": self.groups,
            "delete_group": self.groups,
            "update_organization": self.organizations,
            "join_group": [user for user in self.users if user not in self.joined],
            "leave_group": self.joined,
        }
        return bool(owned.get(name, True))

    def _owe(self, kind: str, entity: str, mark: str = "") -> None:
        self.keys.append(f"{kind}/{entity}" + (f"/{mark}" if mark else ""))
        self.entities.append(entity)

    def _create_user(self, mark: str) -> None:
        from identity.services.users import create_user

        user = create_user(tenant_id=self.tenant["id"], connection=self.connection, nickname=mark, email=f"{mark}@example.test")
        self._owe("user.created", user.user_id, mark)
        self.after.append(lambda: self.users.append(user.user_id))

    def _update_user(self, mark: str) -> None:
        self._update_one_user(self.random.choice(self.users), mark)

    def _update_shared_user(self, mark: str) -> None:
        self._update_one_user(self.random.choice(self.tenant["users"]), mark)

    def _update_one_user(self, user_id: str, mark: str) -> None:
        from identity.services.users import update_user

        update_user(tenant_id=self.tenant["id"], user_id=user_id, changes={"nickname": mark})
        self._owe("user.updated", user_id, mark)

    def _delete_user(self, mark: str) -> None:
        from identity.services.users import delete_user

        user_id = self.random.choice([user for user in self.users if user not in self.joined])
        delete_user(tenant_id=self.tenant["id"], user_id=user_id)
        self._owe("user.deleted", user_id)
        self.after.append(lambda: self.users.remove(user_id))

    def _create_group(self, mark: str) -> None:
        from identity.services.groups import create_group

        group = create_group(tenant_id=self.tenant["id"], name=mark)
        self._owe("group.created", group.pk, mark)
        self.after.append(lambda: self.groups.append(group.pk))

    def _update_group(self, mark: str) -> None:
        self._update_one_group(self.random.choice(self.groups), mark)

    def _update_shared_group(self, mark: str) -> None:
        self._update_one_group(self.tenant["group"], mark)

    def _update_one_group(self, group_id: str, mark: str) -> None:
        from identity.services.groups import update_group

        update_group(tenant_id=self.tenant["id"], group_id=group_id, changes={"name": mark})
        self._owe("group.updated", group_id, mark)

    def _delete_group(self, mark: str) -> None:
        from identity.services.groups import delete_group

        group_id = self.random.choice(self.groups)
        delete_group(tenant_id=self.tenant["id"], group_id=group_id)
        self._owe("group.deleted", group_id)
        self.after.append(lambda: self.groups.remove(group_id))

    def _create_organization(self, mark: str) -> None:
        from identity.services.organizations import create_organization

        organization = create_organization(tenant_id=self.tenant["id"], name=mark, display_name=mark)
        self._owe("organization.created", organization.pk, mark)
        self.after.append(lambda: self.organizations.append(organization.pk))

    def _update_organization(self, mark: str) -> None:
        from identity.services.organizations import update_organization

        organization_id = self.random.choice(self.organizations)
        update_organization(tenant_id=self.tenant["id"], organization_id=organization_id, changes={"display_name": mark})
        self._owe("organization.updated", organization_id, mark)

    def _join_group(self, mark: str) -> None:
        from identity.services.groups import add_group_members

        user_id = self.random.choice([user for user in self.users if user not in self.joined])
        add_group_members(tenant_id=self.tenant["id"], group_id=self.tenant["group"], user_ids=[user_id])
        self._owe("group.member.added", f"{self.tenant['group']}+{user_id}")
        self.after.append(lambda: self.joined.add(user_id))

    def _leave_group(self, mark: str) -> None:
        from identity.services.groups import remove_group_members

        user_id = self.random.choice(sorted(self.joined))
        remove_group_members(tenant_id=self.tenant["id"], group_id=self.tenant["group"], member_ids=[user_id])
        self._owe("group.member.deleted", f"{self.tenant['group']}+{user_id}")
        self.after.append(lambda: self.joined.discard(user_id))

    def _pause(self) -> None:
        if self.think:
            time.sleep(self.random.expovariate(1 / self.think))

    def _note(self, line: dict[str, Any]) -> None:
        self.output.write(json.dumps(line) + "\n")
        self.output.flush()


def main() -> None:
    specification = json.loads(Path(sys.argv[1]).read_text())
    stop = Path(specification["stop"])
    with Path(specification["log"]).open("a") as output:
        writer = Writer(specification, output)
        while not stop.exists() and writer.number < specification["count"]:
            writer.run_one()
    from events.log.numbering import numberer

    numberer().stop()


if __name__ == "__main__":
    django.setup()
    main()
