"""Random sequences of every kind of write. The events of a sequence, applied in order, must give the contents of the tables."""

from __future__ import annotations

import contextlib
import secrets
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from events.models import Mark
from events.record import tripwire
from identity.models import LinkedIdentity, User
from identity.services import connections, tenants, users
from identity.services.failures import ServiceError
from tests.depth import sized
from tests.events.log_reading import folded, numbered, tables

INDEX = st.integers(min_value=0, max_value=5)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=20)
METADATA = st.dictionaries(
    TEXT, st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT, max_size=3
)


class Undo(Exception):
    """Raised to roll back a transaction or a savepoint."""


class EveryWayToWrite(RuleBasedStateMachine):
    """Users and connections of one new tenant, changed through services, rows, raw SQL, savepoints and rollbacks."""

    @initialize()
    def begin(self) -> None:
        self.tenant = f"m-{secrets.token_hex(6)}"
        tenants.create_tenant(tenant_id=self.tenant, name="machine", host=f"{self.tenant}.example.test")
        self.connection = connections.create_connection(tenant_id=self.tenant, name="people", strategy="database")

    def pick(self, index: int) -> User | None:
        rows = list(User.objects.of(self.tenant).order_by("pk"))
        return rows[index % len(rows)] if rows else None

    def sql(self, statement: str, *parameters: Any) -> None:
        with contextlib.suppress(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, parameters)

    @rule(name=TEXT, email=st.sampled_from(["a@x.test", "b@x.test", "c@x.test", None]), metadata=METADATA)
    def create(self, name: str, email: str | None, metadata: dict[str, Any]) -> None:
        with contextlib.suppress(ServiceError):
            users.create_user(tenant_id=self.tenant, connection=self.connection, name=name, email=email, app_metadata=metadata)

    @rule(index=INDEX, changes=st.fixed_dictionaries({}, optional={"name": TEXT, "blocked": st.booleans(), "user_metadata": METADATA}))
    def update(self, index: int, changes: dict[str, Any]) -> None:
        if user := self.pick(index):
            with contextlib.suppress(ServiceError):
                users.update_user(tenant_id=self.tenant, user_id=user.user_id, changes=changes)

    @rule(index=INDEX, name=TEXT, partly=st.booleans())
    def save_row(self, index: int, name: str, partly: bool) -> None:
        if user := self.pick(index):
            user.nickname = name
            user.save(update_fields=["nickname"] if partly else None)

    @rule(index=INDEX)
    def delete(self, index: int) -> None:
        if user := self.pick(index):
            users.delete_user(tenant_id=self.tenant, user_id=user.user_id)

    @rule(index=INDEX)
    def delete_by_queryset(self, index: int) -> None:
        if user := self.pick(index):
            User.objects.of(self.tenant).filter(pk=user.pk).delete()

    @rule(first=INDEX, second=INDEX)
    def link(self, first: int, second: int) -> None:
        primary, secondary = self.pick(first), self.pick(second)
        if primary and secondary:
            with contextlib.suppress(ServiceError):
                users.link_users(tenant_id=self.tenant, primary_id=primary.user_id, secondary_id=secondary.user_id)

    @rule(index=INDEX)
    def unlink(self, index: int) -> None:
        linked = list(LinkedIdentity.objects.of(self.tenant).select_related("user").order_by("pk"))
        if linked:
            identity = linked[index % len(linked)]
            with contextlib.suppress(ServiceError):
                users.unlink_identity(
                    tenant_id=self.tenant, user_id=identity.user.user_id, provider=identity.provider, identifier=identity.identifier
                )

    @rule(index=INDEX, name=TEXT)
    def raw_update(self, index: int, name: str) -> None:
        if user := self.pick(index):
            self.sql("UPDATE identity_user SET given_name = %s WHERE id = %s", name, user.pk)

    @rule(name=TEXT)
    def raw_update_of_everybody(self, name: str) -> None:
        self.sql("UPDATE identity_user SET family_name = %s WHERE tenant_id = %s", name, self.tenant)

    @rule(index=INDEX)
    def raw_login(self, index: int) -> None:
        if user := self.pick(index):
            self.sql("UPDATE identity_user SET logins_count = logins_count + 1, last_login = now() WHERE id = %s", user.pk)

    @rule(index=INDEX)
    def raw_delete(self, index: int) -> None:
        if user := self.pick(index):
            self.sql("DELETE FROM identity_linkedidentity WHERE user_id = %s", user.pk)
            self.sql("DELETE FROM identity_user WHERE id = %s", user.pk)

    @rule(index=INDEX, other=INDEX)
    def raw_move_of_identities(self, index: int, other: int) -> None:
        source, destination = self.pick(index), self.pick(other)
        if source and destination:
            self.sql("UPDATE identity_linkedidentity SET user_id = %s WHERE user_id = %s", destination.pk, source.pk)

    @rule(index=INDEX, metadata=METADATA)
    def change_connection(self, index: int, metadata: dict[str, Any]) -> None:
        connections.update_connection(
            tenant_id=self.tenant,
            connection_id=self.connection.pk,
            changes={"metadata": {str(key): str(value) for key, value in metadata.items()}},
        )

    @rule(index=INDEX, name=TEXT, undo=st.booleans())
    def several_in_one_transaction(self, index: int, name: str, undo: bool) -> None:
        with contextlib.suppress(Undo, ServiceError), transaction.atomic():
            self.raw_update(index, name)
            self.create(name, None, {})
            with contextlib.suppress(Undo), transaction.atomic():
                self.update(index, {"blocked": True})
                self.delete(index + 1)
                raise Undo
            self.save_row(index, name, True)
            if undo:
                raise Undo

    @rule()
    def sweep(self) -> None:
        tripwire.sweep()

    @invariant()
    def folding_the_stream_equals_the_tables(self) -> None:
        if not hasattr(self, "tenant"):
            return
        if Mark.objects.filter(tenant_id=self.tenant).exists():
            tripwire.sweep(limit=10_000)
        assert not Mark.objects.filter(tenant_id=self.tenant).exists()
        assert folded(numbered(self.tenant)) == tables(self.tenant)


@pytest.mark.sized
@pytest.mark.timeout(600)
def test_events_applied_in_order_give_the_tables_after_every_kind_of_write(committed_db: None) -> None:
    run_state_machine_as_test(
        EveryWayToWrite,
        settings=settings(max_examples=sized(4, deep=24), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)),
    )
