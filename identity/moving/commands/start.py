"""`manage.py tenants start`: cancels a move at the installation that the tenant was to leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser, OutputWrapper

from identity.models import Tenant
from identity.moving import stopping
from identity.moving.confirming import add_yes, confirm

HELP = """Cancel a move: start a stopped tenant again at this installation.

The tenant gets back the status that it had before `stop`. An archive that was exported is then out of date: delete the archive, and remove
an import of the archive at the other installation with `manage.py tenants remove`.

After `hand-over`, the tenant may already run at the other installation. If the tenant runs at both installations, both write to the same
SCIM servers, and each installation refuses cursors and refresh tokens of the other installation. First check that the tenant is not open at
the other installation; then use --after-hand-over.

  manage.py tenants start acme
  manage.py tenants start acme --after-hand-over
"""


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("tenant", help="Id of the tenant.")
    parser.add_argument("--after-hand-over", action="store_true", help="Confirm that the tenant does not run at the other installation.")
    add_yes(parser)


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> None:
    tenant_id = options["tenant"]
    is_moved = Tenant.objects.filter(pk=tenant_id, status=Tenant.Status.MOVED).exists()
    if is_moved and not options["after_hand_over"]:
        raise CommandError(
            f"{tenant_id} was handed over. If the tenant does not run at the other installation, remove the tenant there, "
            "then use --after-hand-over."
        )
    confirm(tenant_id, f"{tenant_id} will run here again. Archives of this tenant are then out of date.", options, stdout)
    stdout.write(f"{tenant_id} is {stopping.start_tenant(tenant_id=tenant_id)}.")
