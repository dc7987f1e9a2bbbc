"""`manage.py build_search_indexes`: build the indexes that a migration could not build, for the search of users."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from identity.search.indexes import build_search_indexes


class Command(BaseCommand):
    help = (
        "Build the missing indexes of the search of users while the service runs. They need the extensions btree_gin and "
        "pg_trgm, which the owner of the database or a superuser may have to create first. Does nothing if no index is missing."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        problems = build_search_indexes(connection)
        if problems:
            raise CommandError("\n".join(problems))
        self.stdout.write("All indexes of the search of users exist.")
