"""`manage.py rotate_signing_keys`: makes the next key the current key, and publishes a new next key. Old tokens stay valid."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from authapi.tokens.keys import UnknownKey, revoke_key, rotate_keys
from identity.models import Tenant


class Command(BaseCommand):
    help = "Rotate the signing keys of one tenant or of all tenants. With --revoke, stop trusting a key immediately."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", help="Id of the tenant. Default: all tenants.")
        parser.add_argument("--revoke", metavar="KID", help="Id of a key whose tokens become invalid immediately. Requires --tenant.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant_id, kid = options["tenant"], options["revoke"]
        if kid and not tenant_id:
            raise CommandError("--revoke requires --tenant, because a key belongs to one tenant.")
        if tenant_id and not Tenant.objects.filter(pk=tenant_id).exists():
            raise CommandError(f"There is no tenant {tenant_id}.")
        if kid:
            self._revoke(tenant_id, kid)
            return
        for each in [tenant_id] if tenant_id else Tenant.objects.values_list("pk", flat=True):
            self.stdout.write(f"{each}: key {rotate_keys(each).kid} signs now.")

    def _revoke(self, tenant_id: str, kid: str) -> None:
        try:
            revoke_key(tenant_id, kid)
        except UnknownKey as error:
            raise CommandError(f"{tenant_id} has no revocable key {kid}.") from error
        self.stdout.write(f"{tenant_id}: key {kid} is revoked. Tokens that it signed are refused.")
