"""Only the functions in `ALLOWED` read rows of all tenants. `ALLOWED` gives the reason for each function."""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("foundation", "identity", "authapi", "events", "provisioning", "config")
UNBOUND = frozenset({"all_tenants", "_default_manager", "_base_manager"})

# Keys: module and function. Values: how often the function reads rows of all tenants, and the reason.
ALLOWED = {
    ("authapi/accounts/attack_notices.py", "due_notices"): (1, "a scheduled task finds due notices of all tenants"),
    ("authapi/accounts/attack_notices.py", "_taken"): (1, "a worker claims a notice by its key"),
    ("authapi/expiry.py", "Ending.drop_batch"): (2, "a scheduled task deletes expired rows of all tenants"),
    ("authapi/login/sessions.py", "end_expired_sessions"): (1, "a scheduled task ends expired sessions of all tenants"),
    ("authapi/logs/browsing.py", "_lines"): (1, "an operator who has selected no tenant reads the sign-in log of all tenants"),
    ("authapi/logs/browsing.py", "_walked"): (1, "the keys come from rows that are already limited to one tenant"),
    ("authapi/protocols/oauth/logout_notices.py", "claim_notice"): (1, "a worker claims a notice by its id"),
    ("authapi/protocols/oauth/logout_notices.py", "due_notices"): (1, "a scheduled task finds due notices of all tenants"),
    ("authapi/tokens/keys.py", "rotate_due_keys"): (1, "a scheduled task rotates the keys of all tenants"),
    ("authapi/upstream/metadata_refresh.py", "due_metadata"): (1, "a scheduled task finds due metadata documents of all tenants"),
    ("authapi/upstream/metadata_refresh.py", "refresh"): (1, "a worker claims a metadata document by its id"),
    ("config/console/dashboard/checklist.py", "_done"): (7, "a join limits the rows to one tenant"),
    ("config/console/dashboard/health.py", "_keys"): (2, "the start page of a platform operator checks the keys of all tenants"),
    ("config/console/dashboard/health.py", "_saml_certificates"): (
        1,
        "the start page of a platform operator checks the certificates of all tenants",
    ),
    ("config/console/dashboard/state.py", "_counts"): (1, "the start page of a platform operator counts all tenants"),
    ("config/demonstration/demo.py", "_client"): (1, "finds the client of the demo with a filter on the tenant"),
    ("events/admin/entities.py", "_rows_of_kind"): (1, "each part of the filter names the tenant of its entities"),
    ("identity/admin/relations.py", "RelationAdmin.create"): (1, "reads the new row with a filter on the tenant"),
    ("identity/hosts.py", "_registered"): (1, "a host determines its tenant, so the tenant is unknown before this read"),
    ("identity/admin/people/labels.py", "users_by_id"): (1, "each part of the filter names the tenant of its users"),
    ("identity/management/commands/import_users.py", "Command._resumed"): (1, "an operator continues a job by its id"),
    ("identity/option_redaction.py", "plain_rows"): (1, "an operator removes old secrets from rows of all tenants"),
    ("identity/services/database_strategy.py", "refuse_changed_strategy"): (
        1,
        "the strategy of database connections is the same for the whole platform",
    ),
    ("identity/admin/people/relation_names.py", "_names"): (
        1,
        "the list has already filtered its entries by tenant, and each row is used only for entries of the tenant of the row",
    ),
    ("identity/moving/facts.py", "_hosts"): (1, "an operator imports a tenant, and a host belongs to at most one tenant of the platform"),
    ("identity/services/domains.py", "_is_proven"): (1, "a host belongs to at most one tenant of the platform"),
    ("identity/services/job_retention.py", "prune_jobs"): (4, "a scheduled task deletes old jobs and links of all tenants"),
    ("identity/services/jobs.py", "_count_failure"): (1, "a worker counts the failure of the job that it has claimed"),
    ("identity/services/jobs.py", "_do_effect"): (1, "a worker runs the effect of the job that it has claimed"),
    ("identity/services/jobs.py", "_fail"): (1, "a worker ends the job that it has claimed"),
    ("identity/services/jobs.py", "run_next_chunk"): (1, "a worker claims a job by its id"),
    ("identity/services/jobs.py", "take_unattended_jobs"): (2, "the sweep finds jobs that no worker has claimed"),
    ("provisioning/admin/account_links.py", "AccountLinkAdmin.get_queryset"): (
        1,
        "reads the actions of rows that the list has already filtered by tenant",
    ),
    ("provisioning/admin/outcomes/redelivery_feedback.py", "waits_of"): (
        1,
        "reads the streams of dead letters that the list has already filtered by tenant",
    ),
    ("provisioning/admin/stream_form.py", "StreamForm"): (1, "the form offers no rows before its tenant is known"),
    ("provisioning/admin/stream_names.py", "_names_of"): (1, "reads the streams of rows that the list has already filtered by tenant"),
    ("provisioning/commands/following.py", "stream_named"): (1, "an operator names an event stream by its id"),
    ("provisioning/synchronization/people.py", "People.elsewhere"): (
        2,
        "an account on a shared server may belong to a user of another tenant; such an account must not be deleted",
    ),
}


def uses_in(module: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield module and function for each read of rows of all tenants in the text of a module."""
    waiting: list[tuple[ast.AST, tuple[str, ...]]] = [(ast.parse(text), ())]
    while waiting:
        node, names = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = (*names, node.name)
        if isinstance(node, ast.Attribute) and node.attr in UNBOUND:
            yield module, ".".join(names)
        waiting += [(child, names) for child in ast.iter_child_nodes(node)]


def uses() -> Counter[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    modules = [name for name in listed if name.endswith(".py") and "/migrations/" not in name]
    # Parse only modules whose text contains a name in `UNBOUND`: parsing all modules takes as long as hundreds of tests.
    texts = {name: text for name in modules if any(word in (text := (ROOT / name).read_text()) for word in UNBOUND)}
    return Counter(use for name, text in texts.items() for use in uses_in(name, text))


def test_only_functions_in_the_table_read_rows_of_every_tenant() -> None:
    assert uses() == {place: count for place, (count, _) in ALLOWED.items()}


def test_a_second_read_in_a_listed_function_is_a_violation() -> None:
    function = "    def b(self):\n        return X.all_tenants.all(), Y.all_tenants.get()\n"
    text = f"class A:\n{function}\n\ndef c():\n    return Z._base_manager\n"
    assert Counter(uses_in("m.py", text)) == {("m.py", "A.b"): 2, ("m.py", "c"): 1}
