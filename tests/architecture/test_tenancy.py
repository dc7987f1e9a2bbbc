"""Where rows of every tenant are read: each module stands in this list with its reason, and no other does it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("foundation", "identity", "authapi", "events", "provisioning", "config")
UNBOUND = re.compile(r"\.all_tenants\b|\._default_manager\b|\._base_manager\b")

ALLOWED = {
    "authapi/tokens/keys.py": "the calendar rotates the keys of all tenants",
    "authapi/upstream/metadata_refresh.py": "a worker takes a document by its id, and the calendar looks for those that are due",
    "authapi/protocols/oauth/logout_notices.py": "a worker takes a notice by its id, and the calendar looks for those that are due",
    "authapi/login/sessions.py": "the calendar ends expired sessions of all tenants",
    "authapi/logs/browsing.py": "an operator who has chosen no tenant reads the sign-in log of all; keys come from rows that are narrowed",
    "authapi/expiry.py": "the calendar drops rows of all tenants that are over",
    "config/console/dashboard/checklist.py": "the rows of one tenant, named in a join with it",
    "config/console/dashboard/health.py": "the start page of a platform operator looks at the keys of all tenants",
    "config/console/dashboard/state.py": "the start page of a platform operator counts all tenants",
    "config/demonstration/demo.py": "finds the demo's client again, the tenant named in the filter",
    "identity/admin/relations.py": "reads back the row just joined, the tenant named in the filter",
    "provisioning/admin/account_links.py": "names the actions of the rows of a page, which the list has narrowed to its tenant",
    "provisioning/synchronization/people.py": "an account on a shared server may be a user's of another tenant, which must not be deleted",
    "provisioning/admin/stream_names.py": "names the streams of the rows of a page, which the list has narrowed to its tenant",
    "provisioning/admin/stream_form.py": "an empty choice until the form knows its tenant",
    "identity/hosts.py": "a host names its tenant, so no tenant is known before",
    "identity/option_redaction.py": "an operator takes old secrets out of the rows of all tenants",
    "identity/services/domains.py": "a host belongs to at most one tenant of the platform",
    "identity/services/jobs.py": "a worker takes a job by its id, and the sweep looks for those nobody works on",
    "identity/services/job_retention.py": "the calendar drops old jobs and links of all tenants",
    "provisioning/commands/following.py": "an operator names an event stream by its id",
    "identity/management/commands/import_users.py": "an operator goes on with a job by its id",
}


def modules_that_read_every_tenant() -> set[str]:
    listed = subprocess.run(["git", "ls-files", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    files = [name for name in listed if name.endswith(".py") and "/migrations/" not in name]
    return {name for name in files if UNBOUND.search((ROOT / name).read_text())}


def test_only_the_listed_modules_read_rows_of_every_tenant() -> None:
    assert modules_that_read_every_tenant() == set(ALLOWED)
