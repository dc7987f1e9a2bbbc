"""The pure modules, which an import contract in `pyproject.toml` lists, and the test files that use each module."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_CONTRACT = "Pure files import neither Django nor Celery nor requests"
# Folders whose tests take too long for mutants, because they start third-party servers or many processes.
_SLOW = frozenset({"peers", "faults", "conformance", "cluster", "journeys", "mutants"})
_SAML = ("tests/authapi/upstream/saml/test_login.py", "tests/authapi/upstream/saml/test_logout.py")
_SEARCH = ("tests/identity/search/test_compiling.py", "tests/identity/search/test_grammar.py", "tests/identity/search/test_oracle.py")
_EXPORTS = ("tests/identity/api/test_jobs.py",)
# Further test files of a module, which use the module through another module. An entry is needed if no test file, or too few test files,
# import the module.
_NEAR = {
    "authapi.looks.addresses": ("tests/authapi/looks/test_hosted_looks.py", "tests/authapi/looks/test_pictures.py"),
    "authapi.protocols.wsfed.metadata": ("tests/authapi/protocols/wsfed/test_passive.py",),
    "authapi.protocols.wsfed.settings": ("tests/authapi/protocols/wsfed/test_passive.py",),
    "authapi.protocols.wsfed.tokens": ("tests/authapi/protocols/wsfed/test_passive.py",),
    "authapi.upstream.saml.logouts": _SAML,
    "authapi.upstream.saml.reading": ("tests/authapi/upstream/saml/test_responses.py", *_SAML),
    "authapi.upstream.saml.requests": _SAML,
    "authapi.upstream.saml.showing": ("tests/authapi/upstream/saml/test_responses.py", *_SAML),
    "authapi.upstream.social.options": ("tests/authapi/upstream/social/test_generic.py", "tests/authapi/upstream/social/test_login.py"),
    "authapi.upstream.social.signed_secret": ("tests/authapi/upstream/social/test_login.py",),
    "identity.exports.export_fields": _EXPORTS,
    "foundation.export_lines": _EXPORTS,
    "foundation.gzip_stream": _EXPORTS,
    "identity.imports.import_rows": ("tests/identity/imports/test_imports.py",),
    "foundation.secrets.claim_secrets": ("tests/authapi/upstream/test_tested_claims.py",),
    "foundation.secrets.md4": ("tests/identity/imports/test_imported_passwords.py",),
    "identity.messages.filters": ("tests/identity/messages/test_sandbox.py", "tests/identity/messages/test_email_templates.py"),
    "identity.messages.senders.protocol": ("tests/identity/messages/test_text_senders.py",),
    "identity.search.fields": _SEARCH,
    "identity.search.json_paths": _SEARCH,
    "identity.search.literals": _SEARCH,
    "identity.search.moments": _SEARCH,
    "identity.shapes": ("tests/identity/api/test_users.py", "tests/events/test_event_types.py"),
    "foundation.secrets.signatures": ("tests/identity/api/test_verification.py",),
    "provisioning.scim.responses": ("tests/provisioning/scim/test_shapes_and_statuses.py",),
    "provisioning.runs.results": ("tests/provisioning/actions/test_runner.py", "tests/provisioning/actions/test_decisions.py"),
    "provisioning.runs.run_log": ("tests/provisioning/actions/test_runner.py",),
}


def pure_modules() -> tuple[str, ...]:
    """Return the modules of the import contract, in its order."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return tuple(next(contract["source_modules"] for contract in contracts if contract["name"] == _CONTRACT))


def files_near(module: str) -> tuple[str, ...]:
    """Return the test files that import the module, and the files in `_NEAR` that use it through another module."""
    package, _, name = module.rpartition(".")
    named = re.compile(
        rf"^(?:from {re.escape(module)}(?:\.\w+)* import|import {re.escape(module)}\b|from {re.escape(package)} import .*\b{name}\b)",
        re.MULTILINE,
    )
    found = [path for path, text in _texts() if named.search(text)]
    return tuple(dict.fromkeys([*found, *_NEAR.get(module, ())]))


@cache
def _texts() -> tuple[tuple[str, str], ...]:
    files = [file for file in sorted((ROOT / "tests").rglob("test_*.py")) if not _SLOW & set(file.relative_to(ROOT).parts)]
    return tuple((str(file.relative_to(ROOT)), file.read_text()) for file in files)
