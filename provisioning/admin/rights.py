"""Permissions of staff for dead letters. All pages, buttons and columns use the functions of this module."""

from __future__ import annotations

from enum import StrEnum

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from identity.admin.scope import staff_of


class Right(StrEnum):
    """The permissions of dead letters by their full names."""

    VIEW = "provisioning.view_deadletter"
    VIEW_BODIES = "provisioning.view_deadletter_bodies"
    REDELIVER = "provisioning.redeliver_deadletter"
    FORCE = "provisioning.force_deadletter"
    TRIAGE = "provisioning.triage_deadletter"
    EXPORT = "provisioning.export_deadletter"


def may(request: HttpRequest, *rights: Right) -> bool:
    """Tell whether the account that sent the request may view dead letters and has all of these rights."""
    staff = staff_of(request)
    return staff is not None and all(staff.has_perm(right.value) for right in (Right.VIEW, *rights))


def require(request: HttpRequest, *rights: Right) -> None:
    """Raise `PermissionDenied`, which becomes 403, unless `may` is true for these rights."""
    if not may(request, *rights):
        raise PermissionDenied
