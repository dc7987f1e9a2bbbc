"""Blocks after failed logins, as administrators see and lift them."""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.utils import timezone

from authapi.accounts.brute_force import MEMORY, lift_blocks
from authapi.accounts.user_lookup import names_of
from authapi.models import LoginFailures
from authapi.tenant_settings import sign_in_settings
from identity.models import LinkedIdentity, User


def blocks_in_force(tenant_id: str) -> QuerySet[LoginFailures]:
    """Return the counts that block somebody now: neither forgotten nor below a threshold that was raised meanwhile."""
    threshold = sign_in_settings(tenant_id).brute_force.max_attempts
    rows = LoginFailures.objects.of(tenant_id).filter(last_failed_at__gt=timezone.now() - MEMORY, count__gte=threshold)
    return rows.exclude(blocked_at=None).select_related("connection").order_by("pk")


def blocks_of_identifier(*, tenant_id: str, identifier: str) -> list[LoginFailures]:
    """Return the blocks of an e-mail address, username or phone number at every connection, whether there is such a user or not."""
    return list(blocks_in_force(tenant_id).filter(identifier=identifier.strip().lower()))


def blocks_of_user(user: User) -> list[LoginFailures]:
    """Return the blocks of everything that a user signs in with."""
    linked = LinkedIdentity.objects.of(user.tenant_id).filter(user=user).values("connection")
    own = Q(connection=user.connection_id) | Q(connection__in=linked)
    return list(blocks_in_force(user.tenant_id).filter(own, identifier__in=names_of(user)))


def lift_blocks_of_identifier(*, tenant_id: str, identifier: str) -> int:
    """Forget every failure counted for an identifier; return how many counts there were."""
    return lift_blocks(tenant_id=tenant_id, identifier=identifier)


def lift_blocks_of_user(user: User) -> int:
    """Forget every failure at a user's account; return how many counts there were."""
    return lift_blocks(tenant_id=user.tenant_id, user=user)


def lift_block(row: LoginFailures) -> None:
    """Forget one count. Twice is harmless."""
    LoginFailures.objects.of(row.tenant_id).filter(pk=row.pk).delete()
