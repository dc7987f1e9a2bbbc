"""Throttles suspicious IP addresses: an IP address with failed logins at many accounts, or with many sign-ups, is refused for a while.

Contract 9.10 to 9.13. A stage is a step with its own count of attempts: login, sign-up or token exchange. The counts are buckets in Redis,
or in each process while Redis is unavailable: losing a bucket is acceptable, because buckets only slow down an attack. Blocks of accounts
are in PostgreSQL, because they must not be lost. The rows of `AddressBlock` refuse no request: they show administrators which IP addresses
the buckets refuse.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from authapi.accounts.attack_notices import ask_for_notice
from authapi.accounts.brute_force import counted_address
from authapi.edge.addresses import compiled, is_listed
from authapi.edge.buckets import Bucket
from authapi.edge.throttling import Rate
from authapi.models import AddressBlock, AttackNotice, TenantSettings
from foundation.database.transactions import unit_of_work
from foundation.memory.ttl_cache import Remembered

LOGIN, SIGN_UP, EXCHANGE = "pre-login", "pre-user-registration", "pre-custom-token-exchange"
# `max_attempts` is the number of attempts of an IP address; `rate` is the number of milliseconds after which the IP address gets one more
# attempt.
DEFAULTS: dict[str, Any] = {
    "enabled": True,
    "shields": ["block", "admin_notification"],
    "allowlist": [],
    "stage": {
        LOGIN: {"max_attempts": 100, "rate": 864_000},
        SIGN_UP: {"max_attempts": 50, "rate": 1200},
        # The values of the upstream system: after 10 refused tokens, an IP address gets one attempt every ten minutes.
        EXCHANGE: {"max_attempts": 10, "rate": 600_000},
    },
}
# While a blocked IP address sends more attempts, its row is updated at most this often. The refusals between two updates write nothing.
_NOTED_EVERY = timedelta(minutes=1)
# If an IP address is blocked again after a longer pause than this, the block is reported as new.
_SAME_ATTACK = timedelta(hours=1)
# One mail per hour: an attack from thousands of IP addresses must not flood the administrators.
_TOLD_EVERY = timedelta(hours=1)


@dataclass(frozen=True)
class Suspicion:
    """The settings of a tenant for suspicious IP addresses."""

    is_enabled: bool
    shields: frozenset[str]
    allowlist: tuple[str, ...]
    buckets: dict[str, Bucket]

    @property
    def blocks(self) -> bool:
        """Whether an IP address without remaining attempts is refused."""
        return self.is_enabled and "block" in self.shields

    @property
    def notifies(self) -> bool:
        """Whether administrators are notified of a blocked IP address."""
        return self.is_enabled and "admin_notification" in self.shields


def suspicion_values(row: TenantSettings | None) -> dict[str, Any]:
    """Return the settings under their API names. Missing settings get their defaults."""
    stored: dict[str, Any] = row.attack_protection.get("suspicious_ip_throttling", {}) if row is not None else {}
    stages = {name: {**default, **stored.get("stage", {}).get(name, {})} for name, default in DEFAULTS["stage"].items()}
    return {**DEFAULTS, **stored, "stage": stages}


def is_suspicious(tenant_id: str, ip: str, stage: str) -> bool:
    """Tell whether an IP address is refused because it has no attempts left at a stage. Uses up no attempt. If no attempt is left, stores
    the block."""
    rules = remembered_suspicion.get(tenant_id)
    if not _applies(rules, ip) or rules.buckets[stage].has_one(tenant_id, counted_address(ip)):
        return False
    _note_block(tenant_id, counted_address(ip), stage, rules)
    return rules.blocks


def count_attempt(tenant_id: str, ip: str, stage: str) -> bool:
    """Count an attempt of an IP address at a stage. Return False if the attempt is refused because the IP address has no attempts left."""
    rules = remembered_suspicion.get(tenant_id)
    if not _applies(rules, ip) or rules.buckets[stage].takes(tenant_id, counted_address(ip)):
        return True
    _note_block(tenant_id, counted_address(ip), stage, rules)
    return not rules.blocks


def rate_of_suspicious(tenant_id: str, stage: str) -> Rate:
    """Return the rate limit to report to an IP address that has no attempts left at a stage."""
    return Rate.of_empty(remembered_suspicion.get(tenant_id).buckets[stage])


def is_address_blocked(tenant_id: str, ip: str) -> bool:
    """Tell whether an IP address is refused at any stage now. Stores nothing."""
    rules = remembered_suspicion.get(tenant_id)
    owner = (tenant_id, counted_address(ip))
    return rules.blocks and _applies(rules, ip) and not all(bucket.has_one(*owner) for bucket in rules.buckets.values())


def lift_address(tenant_id: str, ip: str) -> None:
    """Restore all attempts of an IP address at every stage. Idempotent. An IPv6 address shares its attempts with its /64 network."""
    _lift(tenant_id, counted_address(ip))


def lift_block(row: AddressBlock) -> None:
    """Restore the attempts of a blocked IP address at every stage. The row has one stage, but one attack may have used up the attempts of
    several stages."""
    _lift(row.tenant_id, row.address)


@unit_of_work
def _lift(tenant_id: str, address: str) -> None:
    AddressBlock.objects.of(tenant_id).filter(address=address).delete()
    for bucket in remembered_suspicion.get(tenant_id).buckets.values():
        bucket.fill(tenant_id, address)


def _applies(rules: Suspicion, ip: str) -> bool:
    # A trusted proxy that does not forward the IP addresses of clients hides many clients. These clients must not count as one suspicious
    # IP address.
    is_hidden = compiled(settings.TRUSTED_PROXIES).has(ip)
    return (rules.blocks or rules.notifies) and bool(counted_address(ip)) and not is_hidden and not is_listed(ip, rules.allowlist)


@unit_of_work
def _note_block(tenant_id: str, address: str, stage: str, rules: Suspicion) -> None:
    """Store the block for administrators, and notify the administrators if the block is new."""
    now = timezone.now()
    shown = {"last_refused_at": now, "ends_at": now + timedelta(seconds=rules.buckets[stage].seconds), "is_refused": rules.blocks}
    rows = AddressBlock.objects.of(tenant_id).filter(address=address, stage=stage)
    if rows.filter(last_refused_at__gt=now - _NOTED_EVERY, is_refused=rules.blocks).exists():
        return
    if rows.filter(ends_at__gt=now - _SAME_ATTACK).update(**shown):
        return
    rows.delete()
    new = AddressBlock(tenant_id=tenant_id, address=address, stage=stage, blocked_at=now, **shown)
    AddressBlock.objects.of(tenant_id).bulk_create([new], ignore_conflicts=True)
    if rules.notifies:
        ask_for_notice(tenant_id, AttackNotice.Kind.BLOCKED_ADDRESSES, _TOLD_EVERY)


def _load(tenant_id: str) -> Suspicion:
    values = suspicion_values(TenantSettings.objects.of(tenant_id).first())
    return Suspicion(
        is_enabled=values["enabled"],
        shields=frozenset(values["shields"]),
        allowlist=tuple(values["allowlist"]),
        buckets={name: Bucket(name, stage["max_attempts"], stage["rate"] / 1000) for name, stage in values["stage"].items()},
    )


remembered_suspicion: Remembered[str, Suspicion] = Remembered(_load, seconds=1.0)
