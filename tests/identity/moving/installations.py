"""Two installations in one process. The second installation has another database on the same server, and other lists of keys."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from django.conf import settings
from django.test import override_settings

from events.log.numbering import number_tenant
from events.models import Mark
from identity.hosts import forget_hosts
from identity.models import Tenant
from identity.moving import stopping
from identity.moving.archive import Archive, open_archive, read_or_make_key
from identity.moving.exporting import export_tenant
from tests.databases import connected_to, create_migrated

LISTS = ("SESSION_KEYS", "DIGEST_KEYS", "CURSOR_KEYS", "ENCRYPTION_KEYS")


def quiet(*_: object) -> None:
    """Accept a report about the progress of a step, and do not print it."""


def new_keys(prefix: str) -> dict[str, dict[str, str]]:
    """Return a list with one new key for each of the settings `LISTS`. The ids of the keys begin with `prefix`."""
    return {name: {f"{prefix}{number}": secrets.token_urlsafe(40)} for number, name in enumerate(LISTS)}


class Target:
    """Another installation. It has its own encryption key. Its other lists of keys contain its own keys first, and then the keys of the
    source."""

    def __init__(self, database: str) -> None:
        self.database = database
        own = new_keys("b")
        self.keys = {name: {**own[name], **getattr(settings, name)} for name in LISTS if name != "ENCRYPTION_KEYS"}
        self.keys["ENCRYPTION_KEYS"] = own["ENCRYPTION_KEYS"]

    @contextmanager
    def here(self, **changed: object) -> Iterator[None]:
        """Run the block with the database and the settings of the target. `changed` replaces further settings."""
        forget_hosts()
        with connected_to(self.database), override_settings(**{**self.keys, **changed}):
            yield
        forget_hosts()


@contextmanager
def other_installation() -> Iterator[Target]:
    """Create the database of another installation, yield the installation, and drop the database at the end."""
    name = f"test_target_{secrets.token_hex(6)}"
    with psycopg.connect(os.environ["DATABASE_URL"], dbname="postgres", autocommit=True) as server:
        create_migrated(server, name)
        yield Target(name)
        server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def exported(tenant: Tenant, directory: Path) -> Archive:
    """Stop and export a tenant, and return the complete archive."""
    stopped(tenant)
    key, _ = read_or_make_key(directory.with_suffix(".key"), archive=directory)
    export_tenant(tenant_id=tenant.pk, directory=directory, key=key, progress=quiet)
    return open_archive(directory, key=key)


def stopped(tenant: Tenant) -> None:
    """Stop a tenant after its last event has a position."""
    number_tenant(tenant.pk)
    Mark.objects.filter(tenant_id=tenant.pk).delete()
    stopping.stop_tenant(tenant_id=tenant.pk)
