"""A move carries every table with rows of tenants, unless a reason is declared for leaving the table out.

The tests fail if a new table, key or encrypted value is not declared for a move.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import models

from identity.models import AuditEntry, Tenant, User
from identity.moving.carrying import carriage
from identity.moving.tables import CarriedTable, carried_tables
from identity.purging import coverage

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("identity", "authapi", "events", "provisioning", "config")
# Integer columns that contain no key of a row, such as positions in a log, counters and steps of a clock. A move adds an offset to keys,
# but copies these numbers unchanged.
NUMBERS = {
    "events_eventstream": {"position"},
    "events_head": {"position", "floor", "timeline"},
    "events_logentry": {"position"},
    "identity_enrolledfactor": {"last_step", "sign_count"},
    "identity_stafffactor": {"last_step", "sign_count"},
    # `first_key` is the key of the user at the source. A move must not change it.
    "identity_user": {"first_key"},
    "provisioning_accountlink": {"birth", "ended", "position", "doubt"},
    "provisioning_deadletter": {"rebuilt_position"},
    "provisioning_delivery": {"position"},
    "provisioning_streamtally": {"count"},
}
# Files that encrypt only values that a move does not carry. Either the move leaves out the table of these values, or no row of a tenant
# contains them.
ENCRYPTS_ELSEWHERE = {
    "authapi/accounts/passwordless/starting.py": "a move leaves out the table of PasswordlessCode",
    "authapi/factors/passkey_ceremonies.py": "a move leaves out the table of PasskeyCeremony",
    "authapi/login/remembered_account.py": "a cookie: after a move it cannot be decrypted, so the user types the name again",
    "authapi/login/round_trips.py": "a move leaves out the table of LogoutTransaction",
    "authapi/login/transactions.py": "a move leaves out the table of LoginTransaction",
    "authapi/pages/passwordless_link.py": "a field of an HTML form",
    "authapi/protocols/oauth/pushed.py": "a move leaves out the table of PushedRequest",
    "authapi/upstream/authentication_requests.py": "a move leaves out the table of LoginTransaction",
    "config/console/staff_account/app_secret.py": "the session of a staff account, which is not moved",
    "provisioning/admin/setup/kept_token.py": "the session of a staff account, which is not moved",
}
# Files that encrypt the values of a column, each with the column. The declarations of the move (`carry`) must list the column.
DECLARED = {
    "authapi/accounts/handed_tickets.py": "authapi_accountticket.parameters",
    "authapi/accounts/passwordless/messages.py": "identity_job.parameters",
    "authapi/login/sessions.py": "authapi_session.sealed_upstream",
    "authapi/models/clients.py": "authapi_client.sealed_secret",
    "authapi/models/invitations.py": "authapi_invitation.sealed_ticket",
    "authapi/models/keys.py": "authapi_signingkey.sealed_private_key",
    "authapi/models/resources.py": "authapi_apiresource.sealed_signing_secret",
    "authapi/models/tenant_settings.py": "authapi_tenantsettings.sealed_values",
    "authapi/tokens/refresh_tokens.py": "authapi_refreshtoken.sealed_successor",
    "identity/messages/queue.py": "identity_job.parameters",
    "identity/models/messages.py": "identity_messageprovider.sealed_settings",
    "identity/models/proofs.py": "identity_enrolledfactor.sealed_secret",
    "identity/models/staff_factors.py": "identity_stafffactor.sealed_secret",
    "identity/options/sealed_options.py": "identity_connection.sealed_options",
    "identity/services/chunks.py": "identity_jobchunk.content",
    "provisioning/actions/secrets.py": "provisioning_actionsecret.sealed",
}
# Files below this folder need no declaration: they are the move itself, which encrypts the carried values again.
OWN = "identity/moving/"


def test_a_move_carries_every_table_of_tenants_unless_a_reason_is_given() -> None:
    travelling = {table.model for table in carried_tables()}
    expected = {table.model for table in coverage().tables} | coverage().outliving
    assert travelling | carriage().left_behind.keys() == expected
    assert travelling.isdisjoint(carriage().left_behind)
    assert all(reason.endswith(".") for reason in carriage().left_behind.values())


def test_a_move_carries_each_table_after_the_tables_that_the_table_refers_to() -> None:
    order = [table.name for table in carried_tables()]
    late = {f"{table.name}.{column.name}" for table in carried_tables() for column in table.late}
    for table in carried_tables():
        for row_field in table.model._meta.concrete_fields:
            other = _table_of(row_field.related_model)
            if other in order and f"{table.name}.{row_field.column}" not in late:
                assert order.index(other) < order.index(table.name), f"{table.name}.{row_field.column}"


def test_a_column_that_a_move_clears_or_sets_later_is_nullable() -> None:
    for table in carried_tables():
        nullable = {str(row_field.column) for row_field in table.model._meta.concrete_fields if row_field.null}
        assert {column.name for column in table.columns if column.is_late or column.is_cleared or column.is_of_staff} <= nullable


def test_every_integer_column_is_a_shifted_key_or_listed_as_a_plain_number() -> None:
    for table in carried_tables():
        assert set(_unexplained_numbers(table)) == NUMBERS.get(table.name, set()), table.name


def test_relations_refer_to_tables_that_a_move_carries_or_to_the_tenant() -> None:
    travelling = {table.model for table in carried_tables()}
    for table in carried_tables():
        for row_field in table.model._meta.concrete_fields:
            if row_field.is_relation and row_field.related_model not in travelling and row_field.related_model is not Tenant:
                cleared = next(column.is_cleared for column in table.columns if column.name == row_field.column)
                assert cleared, f"{table.name}.{row_field.column}"


def test_the_only_many_to_many_tables_are_those_of_staff_permissions() -> None:
    hidden = {through._meta.db_table for model in apps.get_models() for through in _through_tables(model)}
    assert hidden == {"auth_group_permissions", "identity_staff_groups", "identity_staff_user_permissions"}


def test_every_file_that_encrypts_is_declared() -> None:
    found = {path for path in _files_that_encrypt() if not path.startswith(OWN)}
    assert found - {"identity/migrations/0021_connection_options_sealed.py"} == ENCRYPTS_ELSEWHERE.keys() | DECLARED.keys()
    declared = {f"{table.name}.{column.name}" for table in carried_tables() for column in table.columns if column.sealed}
    assert set(DECLARED.values()) <= declared


def test_every_column_whose_name_begins_with_sealed_is_declared_as_encrypted() -> None:
    for table in carried_tables():
        named = {column.name for column in table.columns if column.name.startswith("sealed") and not column.name.endswith("_until")}
        assert named == {column.name for column in table.columns if column.sealed and column.name.startswith("sealed")}, table.name


def test_the_lasting_key_of_a_user_stays_the_same_after_a_move() -> None:
    user = User(pk=7, first_key=None)
    assert user.lasting_key == 7
    user.first_key = 3
    assert user.lasting_key == 3


def test_a_move_carries_the_audit_log_although_a_purge_keeps_it() -> None:
    assert AuditEntry in {table.model for table in carried_tables()}


def _unexplained_numbers(table: CarriedTable) -> Iterator[str]:
    shifted = {column.name for column in table.columns if column.keys_of}
    for row_field in table.model._meta.concrete_fields:
        if isinstance(row_field, models.BigIntegerField) and row_field.column not in shifted:
            yield str(row_field.column)


def _table_of(model: Any) -> str | None:
    return model._meta.db_table if isinstance(model, type) and issubclass(model, models.Model) else None


def _through_tables(model: type[models.Model]) -> Iterator[type[models.Model]]:
    for relation in model._meta.many_to_many:
        through = relation.remote_field.through
        if through is not None and through._meta.auto_created:
            yield through


def _files_that_encrypt() -> Iterator[str]:
    """Yield the files that call `vault.seal` or `vault.seal_bytes`."""
    for source in SOURCES:
        for path in (ROOT / source).rglob("*.py"):
            calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
            names = {call.attr for call in calls if isinstance(call, ast.Attribute) and getattr(call.value, "id", "") == "vault"}
            if names & {"seal", "seal_bytes"}:
                yield path.relative_to(ROOT).as_posix()
