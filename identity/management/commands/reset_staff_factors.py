"""`manage.py reset_staff_factors EMAIL`: for a staff account whose factors and recovery codes are lost."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from identity.factors.staff_factors import reset_factors
from identity.models import Staff
from identity.models.staff import canonical_email


class Command(BaseCommand):
    help = (
        "Remove all second factors and recovery codes from a staff account and end its sessions. The password alone is then enough to "
        "log in. Before you run the command, verify the identity of the requester over another channel. The audit log records the reset."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="E-mail address of the account.")
        parser.add_argument("--reason", default="", help="Reason for the audit log.")
        parser.add_argument("--yes", action="store_true", help="Skip the confirmation.")

    def handle(self, *args: Any, **options: Any) -> None:
        staff = Staff.objects.filter(email=canonical_email(options["email"])).first()
        if staff is None:
            raise CommandError(f"There is no staff account {options['email']}.")
        factors = list(staff.factors.all())
        for factor in factors:
            self.stdout.write(f"{factor.get_kind_display()}: {factor.name}")
        if not factors:
            self.stdout.write(f"{staff.email} has no second factor.")
            return
        if not options["yes"] and input(f"All its factors will be removed. Type {staff.email} to continue: ") != staff.email:
            raise CommandError("Nothing was changed.")
        count = reset_factors(staff_id=staff.pk, reason=options["reason"])
        self.stdout.write(f"{staff.email} has no second factor any more ({count} removed), and no session.")
