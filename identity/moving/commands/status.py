"""`manage.py tenants status`: shows the moves that are in progress here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser, OutputWrapper

from identity.models import Tenant, TenantMove
from identity.models.tenants import STOPPED

HELP = """Show the tenants that a move has stopped here, and the next step of each.

  manage.py tenants status
"""


def add_arguments(parser: CommandParser) -> None:
    """The subcommand has no arguments."""


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> None:
    moves = {move.pk: move for move in TenantMove.objects.all()}
    tenants = list(Tenant.objects.filter(status__in=STOPPED).order_by("pk"))
    for tenant in tenants:
        stdout.write(f"{tenant.pk}  {tenant.status}  {_next_step(tenant, moves.get(tenant.pk))}")
    if not tenants:
        stdout.write("No tenant is moving.")


def _next_step(tenant: Tenant, move: TenantMove | None) -> str:
    if move is None:
        return "The removal was interrupted. Next: remove."
    if tenant.status == Tenant.Status.MOVED:
        return "Handed over. Next: open at the target, then remove here."
    if tenant.status == Tenant.Status.STOPPED:
        return (
            "Stopped. Next: export. To cancel: start."
            if move.archive_id is None
            else "Exported. Next: import at the target. To cancel: start."
        )
    if move.archive_id is None:
        return "The removal was interrupted. Next: remove."
    return "Imported. Next: hand-over at the source, then open." if move.is_verified else f"{move.parts_done} parts are here. Next: import."
