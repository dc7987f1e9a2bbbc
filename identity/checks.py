"""System checks of database objects that no model declares: triggers and indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connection

from identity.audit.retention import is_guarded
from identity.models import AuditEntry, Connection
from identity.search.indexes import TABLE, missing_search_indexes
from identity.services.database_strategy import StrategyChanged, refuse_changed_strategy


@register(Tags.database)
def check_audit_log(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Report an audit log whose entries could be changed, because its triggers are missing or disabled."""
    if not databases or "default" not in databases or AuditEntry._meta.db_table not in connection.introspection.table_names():
        return []
    if is_guarded():
        return []
    return [
        Warning(
            "The triggers that keep the audit log append-only are missing or disabled.",
            hint="Create them as in migration 0014 of identity.",
            id="identity.W001",
        )
    ]


@register(Tags.database)
def check_search_indexes(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Report missing indexes of the search of users: without these indexes, searches read users row by row."""
    if not databases or "default" not in databases or TABLE not in connection.introspection.table_names():
        return []
    return [
        Warning(
            f"The index {index.name} is missing: searches of users by {index.serves} read users row by row.",
            hint=f"Create the extensions {' and '.join(index.extensions)}, then run: manage.py build_search_indexes",
            id="identity.W002",
        )
        for index in missing_search_indexes(connection)
    ]


@register(Tags.database)
def check_database_strategy(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Report a database strategy in the settings that differs from the strategy of the stored connections."""
    if not databases or "default" not in databases or Connection._meta.db_table not in connection.introspection.table_names():
        return []
    try:
        refuse_changed_strategy()
    except StrategyChanged as refusal:
        return [Error(str(refusal), id="identity.E001")]
    return []
