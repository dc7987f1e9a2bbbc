"""Only exports and the lists of the admin read from a replica. A replica lags behind, so its rows can be older than the caller expects."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ("foundation", "identity", "authapi", "events", "provisioning", "config")
# Each of these modules either shows the age of its rows, or checks first that the replica has every change that the reader must see.
READERS = {
    "foundation/admin/keyset_list.py",
    "foundation/admin/replica_source.py",
    "identity/exports/exports.py",
}
_NAMED = re.compile(r"database\.replica\b|database import .*\breplica\b|connections\[.replica.\]|using\(.replica.\)|using=.replica.")


def test_only_the_named_modules_read_from_the_replica() -> None:
    sources = [path for app in APPS for path in (ROOT / app).rglob("*.py")]

    found = {str(path.relative_to(ROOT)) for path in sources if _NAMED.search(path.read_text())}

    assert found == READERS


def test_no_router_sends_other_queries_to_the_replica() -> None:
    assert "DATABASE_ROUTERS" not in (ROOT / "config/settings/base.py").read_text()
