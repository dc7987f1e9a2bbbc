"""Removes secret options of connections from rows and from the audit log, and reports what it found (docs/adr/0075)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import connection as database
from django.db import transaction

from foundation.database.transactions import unit_of_work
from foundation.secrets.hidden_values import HIDDEN
from foundation.secrets.vault import SecretUnreadable
from identity.models import AuditEntry, Connection
from identity.options.schemas.nodes import Members, Path, is_declared, joined, split, value_at
from identity.services.saving import validated_save

_AT_ONCE = 500
_OBJECT_TYPE = "identity.connection"
# The masking of texts shorter than this would also hide harmless parts of other texts.
_SHORTEST_MASKED = 6


@dataclass
class Finding:
    """A secret that was readable: the number of finds per table, and whether the connection still uses the value."""

    tables: Counter[str] = field(default_factory=Counter)
    is_declared: bool = False
    is_in_use: bool = False


class Findings:
    """All secrets that were found, by tenant, connection and path. Values are kept only for masking and never shown."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, Path], Finding] = {}
        self._texts: dict[str, set[str]] = {}
        self._now: dict[tuple[str, str], tuple[Members, dict[str, Any]] | None] = {}

    def note(self, tenant_id: str, connection_id: str, path: Path, value: Any, *, table: str) -> None:
        """Count a value that was found in a table. Ignores values that are already hidden."""
        texts = set(_texts(value))
        if not texts:
            return
        self._texts.setdefault(tenant_id, set()).update(texts)
        finding = self.found.setdefault((tenant_id, connection_id, path), Finding())
        finding.tables[table] += 1
        now = self._options_now(tenant_id, connection_id)
        if now is not None:
            finding.is_declared = is_declared(now[0], path)
            finding.is_in_use |= value_at(path, now[1]) == value

    def texts(self, tenant_id: str) -> list[str]:
        """Return the texts to mask in the tenant's deliveries, attempts and dead letters of connection events, except short texts."""
        return [text for text in self._texts.get(tenant_id, ()) if len(text) >= _SHORTEST_MASKED]

    def of(self, tenant_id: str) -> list[tuple[str, Path, Finding]]:
        """Return the findings of a tenant, ordered by connection and path."""
        return sorted(
            ((connection_id, path, finding) for (owner, connection_id, path), finding in self.found.items() if owner == tenant_id),
            key=lambda row: row[:2],
        )

    def tenants(self) -> list[str]:
        return sorted({tenant_id for tenant_id, _, _ in self.found})

    def _options_now(self, tenant_id: str, connection_id: str) -> tuple[Members, dict[str, Any]] | None:
        place = (tenant_id, connection_id)
        if place not in self._now:
            row = Connection.objects.of(tenant_id).filter(pk=connection_id).first()
            self._now[place] = None if row is None else (row.option_schema, _opened(row))
        return self._now[place]


def _opened(row: Connection) -> dict[str, Any]:
    try:
        return row.open_options()
    except SecretUnreadable:
        return dict(row.options)


def _texts(value: Any) -> Iterator[str]:
    """Yield every text and number in a value, except the marker of a hidden value."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif value not in (None, HIDDEN, "") and not isinstance(value, bool):
        yield str(value)


def plain_rows(findings: Findings, *, tenant_id: str | None) -> list[tuple[str, str]]:
    """Note the unsealed secrets in connections of one tenant, or of all tenants if `tenant_id` is None.

    Returns the tenant and the key of each of these connections.
    """
    found = []
    # Reads all tenants, because an operator of the platform runs the command.
    rows = Connection.all_tenants.order_by("pk") if tenant_id is None else Connection.objects.of(tenant_id).order_by("pk")
    for row in rows.iterator(chunk_size=_AT_ONCE):
        secrets = split(row.option_schema, row.options).secrets
        for path, value in secrets.items():
            findings.note(row.tenant_id, row.pk, path, value, table="connections")
        if secrets or row.shown_options != row.options:
            found.append((row.tenant_id, row.pk))
    return found


@unit_of_work
def seal_row(*, tenant_id: str, connection_id: str) -> bool:
    """Seal the unsealed secrets of a connection.

    This is an ordinary change of the connection and has an event. Returns False if nothing is left to seal.
    """
    row = Connection.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=connection_id).first()
    if row is None or row.shown_options == row.options:
        return False
    row.seal_plain_options()
    validated_save(row, fields=["options", "sealed_options"])
    return True


def redact_audit_log(findings: Findings, *, tenant_id: str | None, is_applied: bool) -> int:
    """Note the secrets in entries about connections, and hide them if `is_applied` is true. Returns the number of entries."""
    count, last = 0, 0
    rows = AuditEntry.objects.filter(object_type=_OBJECT_TYPE).order_by("pk")
    rows = rows if tenant_id is None else rows.filter(tenant_id=tenant_id)
    while chunk := list(rows.filter(pk__gt=last)[:_AT_ONCE]):
        changed = [entry for entry in chunk if _hide(entry, findings)]
        if is_applied and changed:
            _store(changed)
        count, last = count + len(changed), chunk[-1].pk
    return count


def _store(entries: list[AuditEntry]) -> None:
    """Write the changed entries. The trigger of the audit log permits only a change of the options of connections, and only while
    `identity.audit_redaction` is set."""
    with transaction.atomic(), database.cursor() as cursor:
        cursor.execute("SELECT set_config('identity.audit_redaction', 'connection options', true)")
        for entry in entries:
            AuditEntry.objects.filter(pk=entry.pk).update(before=entry.before, after=entry.after)
        cursor.execute("SELECT set_config('identity.audit_redaction', '', true)")


def _hide(entry: AuditEntry, findings: Findings) -> bool:
    """Hide the secrets in both images of an entry. Returns whether the entry had secrets."""
    is_changed = False
    for name in ("before", "after"):
        image = getattr(entry, name)
        options = image.get("options") if isinstance(image, dict) else None
        if not isinstance(options, dict):
            continue
        parts = split(Connection(strategy=_strategy_of(entry)).option_schema, options)
        hidden = {path: value for path, value in parts.secrets.items() if list(_texts(value))}
        for path, value in hidden.items():
            findings.note(entry.tenant_id or "", entry.object_id, path, value, table="audit log")
        if hidden:
            is_changed = True
            setattr(entry, name, {**image, "options": joined(parts.shown, dict.fromkeys(parts.secrets, HIDDEN))})
    return is_changed


def _strategy_of(entry: AuditEntry) -> str:
    """Return the strategy of the connection of an entry. The strategy never changes.

    For a deleted row, other entries contain the strategy.
    """
    for image in (entry.before, entry.after):
        if image and isinstance(image.get("strategy"), str):
            return str(image["strategy"])
    row = Connection.objects.of(entry.tenant_id or "").filter(pk=entry.object_id).values_list("strategy", flat=True).first()
    if row is not None:
        return str(row)
    about = AuditEntry.objects.filter(object_type=_OBJECT_TYPE, object_id=entry.object_id, kind__in=("add", "delete"))
    images = [image for pair in about.values_list("before", "after") for image in pair if image]
    # Without a strategy, the schema for unknown providers applies, which lists only harmless names.
    return next((str(image["strategy"]) for image in images if "strategy" in image), "")
