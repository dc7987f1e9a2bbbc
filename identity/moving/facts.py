"""The facts in an archive about its tenant and its installation, and the reasons for which a target refuses the archive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from identity.models import CustomDomain, FormerTenant, Staff, Tenant, TenantMove
from identity.moving.archive import Archive
from identity.moving.journey import Journey

# The lists of keys on which clients and stored digests depend. ENCRYPTION_KEYS is not among these lists, because the import encrypts the
# values again.
KEY_LISTS = ("SESSION_KEYS", "DIGEST_KEYS", "CURSOR_KEYS")
# Consumers and stored rows depend on these values.
EQUAL_SETTINGS = ("EVENT_ATTRIBUTE_PREFIX", "EVENT_SOURCE_NAMESPACE", "DATABASE_STRATEGY")
# Columns that belong to the installation and not to the tenant.
_OF_THE_INSTALLATION = ("id", "status", "deletion_started_at", "purge_after")
_SHOWN = 20


def facts_of(tenant: Tenant, journey: Journey, *, earlier_status: str) -> dict[str, Any]:
    """Return the facts that a target checks before it writes anything."""
    columns = [column.attname for column in Tenant._meta.concrete_fields if column.attname not in _OF_THE_INSTALLATION]
    return {
        "tenant": {name: _plain(getattr(tenant, name)) for name in columns},
        "earlier_status": earlier_status,
        "migrations": migrations(),
        "settings": {name: str(getattr(settings, name)) for name in EQUAL_SETTINGS},
        "keys": {name: _fingerprints(name, journey) for name in KEY_LISTS},
        "hosts": sorted(CustomDomain.objects.of(tenant.pk).filter(verified_at__isnull=False).values_list("host", flat=True)),
        "staff": sorted(Staff.objects.filter(tenant=tenant).values_list("email", flat=True)),
    }


def migrations() -> list[str]:
    """Return the applied migrations, as `app.name`."""
    return sorted(f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations())


def refusals(archive: Archive) -> list[str]:
    """Return a sentence for each reason for which this installation cannot accept the tenant. Changes nothing."""
    facts = archive.facts
    checks = (_migrations(facts), _settings(facts), _keys(archive), _tenant(archive), _hosts(archive), _staff(archive))
    return [sentence for check in checks for sentence in check]


def _migrations(facts: dict[str, Any]) -> Iterator[str]:
    theirs, ours = set(facts["migrations"]), set(migrations())
    if missing := sorted(theirs - ours):
        yield f"The source has migrations that are not applied here: {_named(missing)}. Upgrade this installation to the same version."
    if more := sorted(ours - theirs):
        yield f"This installation has migrations that the source does not have: {_named(more)}. Upgrade the source, and export again."


def _settings(facts: dict[str, Any]) -> Iterator[str]:
    for name, theirs in facts["settings"].items():
        ours = str(getattr(settings, name))
        if ours != theirs:
            yield f"{name} is {theirs!r} at the source and {ours!r} here. Both must be equal: consumers and stored rows depend on them."


def _keys(archive: Archive) -> Iterator[str]:
    for name, theirs in archive.facts["keys"].items():
        ours = _fingerprints(name, archive.journey)
        if missing := sorted(theirs.keys() - ours.keys()):
            yield f"{name} lacks the keys {', '.join(missing)} of the source. Add these keys to this setting, after the present keys."
        if different := sorted(key for key in theirs.keys() & ours.keys() if theirs[key] != ours[key]):
            yield f"{name} has other keys under the ids {', '.join(different)} than the source, so the tenant cannot move here."


def _tenant(archive: Archive) -> Iterator[str]:
    tenant_id = archive.tenant_id
    if FormerTenant.objects.filter(pk=tenant_id).exists():
        yield f"A tenant with the id {tenant_id} was deleted here, and events that consumers keep still name it."
    if Tenant.objects.filter(pk=tenant_id).exists() and not is_resumable(archive):
        yield f"A tenant with the id {tenant_id} exists here."


def is_resumable(archive: Archive) -> bool:
    """Tell whether an import of this archive has begun here."""
    return TenantMove.objects.filter(pk=archive.tenant_id, direction=TenantMove.Direction.IN, archive_id=archive.archive_id).exists()


def _hosts(archive: Archive) -> Iterator[str]:
    taken = CustomDomain.all_tenants.filter(host__in=archive.facts["hosts"], verified_at__isnull=False).exclude(tenant_id=archive.tenant_id)
    for host, tenant_id in taken.order_by("host").values_list("host", "tenant_id")[:_SHOWN]:
        yield f"The host {host} belongs to the tenant {tenant_id} here."


def _staff(archive: Archive) -> Iterator[str]:
    taken = Staff.objects.filter(email__in=archive.facts["staff"]).exclude(tenant_id=archive.tenant_id)
    for email in taken.order_by("email").values_list("email", flat=True)[:_SHOWN]:
        yield f"A staff account with the email address {email} exists here. Change one of the two addresses."


def _fingerprints(name: str, journey: Journey) -> dict[str, str]:
    return {key_id: journey.fingerprint(f"{name}:{key_id}:{secret}") for key_id, secret in getattr(settings, name).items()}


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
