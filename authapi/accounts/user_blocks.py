"""Lists and lifts blocks after failed logins, for administrators."""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.utils import timezone

from authapi.accounts.brute_force import MEMORY, lift_blocks
from authapi.accounts.user_lookup import names_of
from authapi.models import LoginFailures
from authapi.tenant_settings import sign_in_settings
from identity.models import LinkedIdentity, User


def blocks_in_force(tenant_id: str) -> QuerySet[LoginFailures]:
    """Return the counts that block an account now. Expired counts, and counts below the present threshold of the tenant, block nothing."""
    threshold = sign_in_settings(tenant_id).brute_force.max_attempts
    rows = LoginFailures.objects.of(tenant_id).filter(last_failed_at__gt=timezone.now() - MEMORY, count__gte=threshold)
    return rows.exclude(blocked_at=None).select_related("connection").order_by("pk")


def blocks_of_identifier(*, tenant_id: str, identifier: str) -> list[LoginFailures]:
    """Return the blocks of an email address, username or phone number at every connection, whether the user exists or not."""
    return list(blocks_in_force(tenant_id).filter(identifier=identifier.strip().lower()))


def blocks_of_user(user: User) -> list[LoginFailures]:
    """Return the blocks of all identifiers of a user."""
    linked = LinkedIdentity.objects.of(user.tenant_id).filter(user=user).values("connection")
    own = Q(connection=user.connection_id) | Q(connection__in=linked)
    return list(blocks_in_force(user.tenant_id).filter(own, identifier__in=names_of(user)))


def lift_blocks_of_identifier(*, tenant_id: str, identifier: str) -> int:
    """Delete all failures counted for an identifier; return the number of deleted counts."""
    return lift_blocks(tenant_id=tenant_id, identifier=identifier)


def lift_blocks_of_user(user: User) -> int:
    """Delete all failures counted for the identifiers of a user; return the number of deleted counts."""
    return lift_blocks(tenant_id=user.tenant_id, user=user)


def lift_block(row: LoginFailures) -> None:
    """Delete one count. Idempotent."""
    LoginFailures.objects.of(row.tenant_id).filter(pk=row.pk).delete()
