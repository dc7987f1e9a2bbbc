"""`manage.py rotate_signing_keys`: the next key signs, a new next key is published, old tokens go on verifying."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from authapi.tokens.keys import UnknownKey, revoke_key, rotate_keys
from identity.models import Tenant


class Command(BaseCommand):
    help = "Rotate the signing keys of one tenant, or of all; with --revoke, stop trusting a key at once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", help="Id of the tenant; without it every tenant is rotated.")
        parser.add_argument("--revoke", metavar="KID", help="Id of a key whose tokens must end now; needs --tenant.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant_id, kid = options["tenant"], options["revoke"]
        if kid and not tenant_id:
            raise CommandError("--revoke needs --tenant: a key belongs to one tenant.")
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
            raise CommandError(f"{tenant_id} has no key {kid} that could be revoked.") from error
        self.stdout.write(f"{tenant_id}: key {kid} is revoked; tokens it signed are refused.")
