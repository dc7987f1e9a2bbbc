"""Brute-force protection: counts consecutive failed logins per identifier in PostgreSQL, and blocks the identifier at a threshold.

Each attempt holds a lock on its failure count until its transaction ends. So attempts at one account from one IP address run one after
another, even in different processes. The number of checked passwords never exceeds the threshold. The row of the user is not locked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db import models
from django.utils import timezone

from authapi.accounts.user_lookup import names_of
from authapi.edge.addresses import customer_of, is_listed, keys_of, parsed_address
from authapi.models import LoginFailures
from authapi.tenant_settings import BruteForce, sign_in_settings
from foundation.database.transactions import lock_name
from identity.models import Connection, LinkedIdentity, User

# Contract 9.8: a block ends this long after the last failure.
MEMORY = timedelta(days=30)


@dataclass(frozen=True)
class Count:
    """The failure count that applies to one attempt. The count is locked until the transaction ends."""

    connection: Connection
    identifier: str
    ip: str
    rules: BruteForce

    @property
    def is_blocked(self) -> bool:
        """Whether the count has reached the threshold. If it has, even the correct password is refused.

        If the tenant raises the threshold above the count, the block ends.
        """
        row = self._row()
        return self.rules.blocks and row is not None and row.blocked_at is not None and row.count >= self.rules.max_attempts

    def add_failure(self) -> bool:
        """Count a failure; return whether it reached the threshold."""
        now = timezone.now()
        row = self._row() or LoginFailures(
            tenant_id=self.connection.tenant_id, connection=self.connection, identifier=self.identifier, ip=self.ip
        )
        row.count += 1
        row.last_failed_at = now
        reaches = row.count >= self.rules.max_attempts and (row.blocked_at is None or row.count == self.rules.max_attempts)
        if reaches:
            row.blocked_at = now
        row.save()
        return reaches

    def forget(self) -> None:
        """Reset the count, for example after a successful login."""
        self._rows().delete()

    def _row(self) -> LoginFailures | None:
        row = self._rows().first()
        if row is not None and row.last_failed_at <= timezone.now() - MEMORY:
            row.delete()
            return None
        return row

    def _rows(self) -> models.QuerySet[LoginFailures]:
        rows = LoginFailures.objects.of(self.connection.tenant_id)
        return rows.filter(connection=self.connection, identifier=self.identifier, ip=self.ip)


def held_count(connection: Connection, identifier: str, ip: str) -> Count | None:
    """Lock and return the failure count of an identifier. If the tenant counts each IP address separately, return the count of `ip`.

    Return None if the tenant or the connection has disabled the protection, or if the IP address is on the allowlist.

    Call it inside a transaction. `identifier` comes from `user_lookup.failure_key`.
    """
    rules = sign_in_settings(connection.tenant_id).brute_force
    if not rules.enabled or connection.options.get("brute_force_protection") is False or is_listed(ip, rules.allowlist):
        return None
    count = Count(connection, identifier, counted_address(ip) if rules.counts_addresses else "", rules)
    lock_name(f"login:{connection.pk}:{count.ip}:{identifier}")
    return count


def counted_address(ip: str) -> str:
    """Return the key under which an IP address is counted: the IPv4 address, or the /64 of an IPv6 address; empty for an invalid IP
    address."""
    return customer_of(keys_of(ip)) if parsed_address(ip) is not None else ""


def lift_blocks(*, tenant_id: str, identifier: str | None = None, user: User | None = None) -> int:
    """Delete the counts of an identifier or, with `user`, of all identifiers of this user. If each IP address is counted
    separately, the counts of all IP addresses are deleted. Return the number of deleted counts."""
    return _counts_of(tenant_id, identifier=identifier, user=user).delete()[0]


def _counts_of(tenant_id: str, *, identifier: str | None, user: User | None) -> models.QuerySet[LoginFailures]:
    rows = LoginFailures.objects.of(tenant_id)
    if user is None:
        return rows.filter(identifier=(identifier or "").strip().lower())
    linked = LinkedIdentity.objects.of(tenant_id).filter(user=user).values("connection")
    ours = models.Q(connection=user.connection_id) | models.Q(connection__in=linked)
    return rows.filter(ours, identifier__in=names_of(user))
