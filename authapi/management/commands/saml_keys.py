"""`manage.py saml_keys`: the certificates of a tenant for SAML and WS-Federation, and the steps of their rotation."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from authapi.models import SamlKey
from authapi.tokens.saml_keys import KeyInUse, NoNextKey, current_key, prepare_key, remove_key, rotate_key
from authapi.xml.certificates import certificate_of, fingerprint_of
from identity.models import Tenant


class Command(BaseCommand):
    help = "List the SAML certificates of a tenant. --prepare publishes the next certificate, --rotate makes it sign, --remove deletes one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, help="Id of the tenant.")
        parser.add_argument("--prepare", action="store_true", help="Publish the next certificate beside the current certificate.")
        parser.add_argument("--rotate", action="store_true", help="Make the published next certificate sign.")
        parser.add_argument("--remove", metavar="KID", help="Delete a previous or next certificate and remove it from the metadata.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant_id = options["tenant"]
        if not Tenant.objects.filter(pk=tenant_id).exists():
            raise CommandError(f"There is no tenant {tenant_id}.")
        if sum(map(bool, (options["prepare"], options["rotate"], options["remove"]))) > 1:
            raise CommandError("Run one step at a time. Partners must load the metadata between the steps.")
        try:
            self._step(tenant_id, options)
        except (NoNextKey, KeyInUse, LookupError) as error:
            raise CommandError(str(error)) from error

    def _step(self, tenant_id: str, options: dict[str, Any]) -> None:
        if options["prepare"]:
            self.stdout.write(f"{tenant_id}: certificate {prepare_key(tenant_id).kid} is published and signs after --rotate.")
        elif options["rotate"]:
            self.stdout.write(f"{tenant_id}: certificate {rotate_key(tenant_id).kid} signs now.")
        elif options["remove"]:
            remove_key(tenant_id, options["remove"])
            self.stdout.write(f"{tenant_id}: certificate {options['remove']} is removed.")
        else:
            current_key(tenant_id)
            for row in SamlKey.objects.of(tenant_id):
                fingerprint = fingerprint_of(certificate_of(row.certificate))
                self.stdout.write(f"{row.kid}  {row.state}  ends {row.expires_at:%Y-%m-%d}  {fingerprint}")
