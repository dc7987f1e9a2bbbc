"""A list of breached passwords for tests, written without the product code for lists, and a tenant that checks passwords with this list."""

from __future__ import annotations

from array import array
from collections import defaultdict
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

from authapi.accounts.leaked_passwords import remembered_leak_rules
from authapi.models import TenantSettings
from identity.breaches import current_list
from identity.breaches.list_file import RANGES, Facts, truncated_digest


def write_list(path: Path, *passwords: str, source: str = "test") -> Path:
    """Write a list with these passwords, and return its path."""
    ranges: dict[int, list[bytes]] = defaultdict(list)
    for password in passwords:
        number, record = truncated_digest(password)
        ranges[number].append(record)
    counts = array("I", bytes(4 * RANGES))
    for number, found in ranges.items():
        counts[number] = len(found)
    records = b"".join(b"".join(sorted(ranges[number])) for number in sorted(ranges))
    facts = Facts(len(passwords), source, 1, datetime(2031, 1, 1, tzinfo=UTC))
    path.write_bytes(facts.head() + records + array("Q", accumulate(counts, initial=0)).tobytes())
    return path


def use_list(settings: Any, path: Path | str) -> None:
    """Make this process search the list at a path. An empty path means no list."""
    settings.BREACHED_PASSWORDS_FILE = str(path)
    current_list._current = current_list.CurrentList()


def detect(tenant_id: str, *shields: str, **values: Any) -> None:
    """Configure a tenant so that it checks for breached passwords. `shields` are its reactions to a login with a breached password."""
    row, _ = TenantSettings.objects.of(tenant_id).get_or_create(tenant_id=tenant_id)
    detection = {"enabled": True, "shields": list(shields), **values}
    row.attack_protection = {**row.attack_protection, "breached_password_detection": detection}
    row.save()
    remembered_leak_rules.clear()
