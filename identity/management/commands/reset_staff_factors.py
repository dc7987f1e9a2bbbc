"""`manage.py reset_staff_factors EMAIL`: for somebody of the staff who has lost their factors and their recovery codes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from identity.factors.staff_factors import reset_factors
from identity.models import Staff
from identity.models.staff import canonical_email


class Command(BaseCommand):
    help = (
        "Take all second factors and recovery codes from a staff account and end its sessions; the password alone opens it then. Make "
        "sure who is asking, over another way than the one they asked on. It is noted in the audit log."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="E-mail address of the account.")
        parser.add_argument("--reason", default="", help="Why, for the audit log.")
        parser.add_argument("--yes", action="store_true", help="Do not ask for the address again.")

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
        if not options["yes"] and input(f"They are taken away for good. Type {staff.email} to go on: ") != staff.email:
            raise CommandError("Nothing was changed.")
        count = reset_factors(staff_id=staff.pk, reason=options["reason"])
        self.stdout.write(f"{staff.email} has no second factor any more ({count} taken away), and no session.")
