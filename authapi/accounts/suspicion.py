"""Throttling of suspicious addresses: one that fails at many accounts, or signs up many, is refused for a while.

Contract 9.10 to 9.13. The buckets live in Redis, and in each process while it is away: they slow an attack down, while blocks of
accounts live in PostgreSQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from authapi.accounts.brute_force import counted_address
from authapi.edge.addresses import compiled, is_listed
from authapi.edge.buckets import Bucket
from authapi.edge.throttling import Rate
from authapi.models import TenantSettings
from foundation.memory.ttl_cache import Remembered

LOGIN, SIGN_UP = "pre-login", "pre-user-registration"
# `rate` is milliseconds per attempt that is given back.
DEFAULTS: dict[str, Any] = {
    "enabled": True,
    "shields": ["block", "admin_notification"],
    "allowlist": [],
    "stage": {LOGIN: {"max_attempts": 100, "rate": 864_000}, SIGN_UP: {"max_attempts": 50, "rate": 1200}},
}


@dataclass(frozen=True)
class Suspicion:
    """What a tenant decided about suspicious addresses."""

    blocks: bool
    allowlist: tuple[str, ...]
    buckets: dict[str, Bucket]


def suspicion_values(row: TenantSettings | None) -> dict[str, Any]:
    """Return the settings by the names of the wire, defaults included."""
    stored: dict[str, Any] = row.attack_protection.get("suspicious_ip_throttling", {}) if row is not None else {}
    stages = {name: {**default, **stored.get("stage", {}).get(name, {})} for name, default in DEFAULTS["stage"].items()}
    return {**DEFAULTS, **stored, "stage": stages}


def is_suspicious(tenant_id: str, ip: str, stage: str) -> bool:
    """Tell whether an address has used up its attempts at a stage. Counts nothing."""
    rules = remembered_suspicion.get(tenant_id)
    return _applies(rules, ip) and not rules.buckets[stage].has_one(tenant_id, counted_address(ip))


def count_attempt(tenant_id: str, ip: str, stage: str) -> bool:
    """Count an attempt of an address at a stage; return whether it had one left."""
    rules = remembered_suspicion.get(tenant_id)
    return not _applies(rules, ip) or rules.buckets[stage].takes(tenant_id, counted_address(ip))


def rate_of_suspicious(tenant_id: str, stage: str) -> Rate:
    """Return the rate of an address that has no attempts left at a stage."""
    return Rate.of_empty(remembered_suspicion.get(tenant_id).buckets[stage])


def _applies(rules: Suspicion, ip: str) -> bool:
    # A proxy that names no client hides many addresses, so they must not count as one suspicious address.
    is_hidden = compiled(settings.TRUSTED_PROXIES).has(ip)
    return rules.blocks and bool(counted_address(ip)) and not is_hidden and not is_listed(ip, rules.allowlist)


def _load(tenant_id: str) -> Suspicion:
    values = suspicion_values(TenantSettings.objects.of(tenant_id).first())
    return Suspicion(
        blocks=values["enabled"] and "block" in values["shields"],
        allowlist=tuple(values["allowlist"]),
        buckets={name: Bucket(name, stage["max_attempts"], stage["rate"] / 1000) for name, stage in values["stage"].items()},
    )


remembered_suspicion: Remembered[str, Suspicion] = Remembered(_load, seconds=1.0)
