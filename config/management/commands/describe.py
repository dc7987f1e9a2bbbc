"""`manage.py describe`: write the pages of the manual that are generated from the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.api import openapi_document
from config.manual.pages import all_pages, stale_pages, write_pages


class Command(BaseCommand):
    # Needs only the code, no database.
    requires_system_checks = ()
    help = "Generate the reference of the manual from the code into docs/reference."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="Write nothing; list the pages that are out of date, and fail if there are any."
        )
        parser.add_argument("--openapi", type=Path, metavar="FILE", help="Write only the OpenAPI document, to this file.")

    def handle(self, *args: Any, **options: Any) -> None:
        place = Path(settings.BASE_DIR) / "docs" / "reference"
        if options["openapi"]:
            options["openapi"].parent.mkdir(parents=True, exist_ok=True)
            options["openapi"].write_bytes(openapi_document())
        elif options["check"]:
            if stale := stale_pages(place, all_pages()):
                raise CommandError(f"Out of date: {', '.join(stale)}. Run `make describe`.")
        else:
            for name in write_pages(place, all_pages()):
                self.stdout.write(f"docs/reference/{name}")
