"""The paths that are checked, and the findings in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from config.plain_english.rules import refused
from config.plain_english.texts import texts_of

ROOT = Path(__file__).resolve().parents[2]
# Paths whose texts are checked. Add a path as soon as its texts are clean.
CLEAN = (
    "CONTRIBUTING.md",
    "README.md",
    "benchmarks",
    "config/__init__.py",
    "config/api.py",
    "config/apps.py",
    "config/asgi.py",
    "config/audited_models.py",
    "config/catalogues",
    "config/celery.py",
    "config/collector.py",
    "config/demonstration",
    "config/env.py",
    "config/formats",
    "config/http_protocol.py",
    "config/launcher",
    "config/logging.py",
    "config/management",
    "config/management_routes.py",
    "config/manual",
    "config/metrics.py",
    "config/middleware",
    "config/plain_english",
    "config/schema",
    "config/server",
    "config/settings",
    "config/task_messages.py",
    "config/upstream",
    "config/urls.py",
    "deploy",
    "docs/adr",
    "docs/conf.py",
    "docs/explanation",
    "docs/figures.md",
    "docs/glossary.md",
    "docs/guarantees.md",
    "docs/house-tour.md",
    "docs/how-to/act-on-many-rows.md",
    "docs/how-to/approvals.md",
    "docs/how-to/back-up-and-restore.md",
    "docs/how-to/bank-clients.md",
    "docs/how-to/branding.md",
    "docs/how-to/company-providers.md",
    "docs/how-to/containers.md",
    "docs/how-to/deploy-tools.md",
    "docs/how-to/devices.md",
    "docs/how-to/exchange-tokens.md",
    "docs/how-to/first-synchronization.md",
    "docs/how-to/high-security-clients.md",
    "docs/how-to/invitations.md",
    "docs/how-to/log-out-everywhere.md",
    "docs/how-to/mails-and-messages.md",
    "docs/how-to/old-clients.md",
    "docs/how-to/passwordless.md",
    "docs/how-to/production-on-one-host.md",
    "docs/how-to/protect-logins.md",
    "docs/how-to/read-the-stream.md",
    "docs/how-to/register-applications.md",
    "docs/how-to/rich-authorization-requests.md",
    "docs/how-to/rotate-keys-and-secrets.md",
    "docs/how-to/runbook.md",
    "docs/how-to/saml-applications.md",
    "docs/how-to/scale-by-tenant.md",
    "docs/how-to/search-users.md",
    "docs/how-to/set-retention.md",
    "docs/how-to/several-hosts.md",
    "docs/how-to/snapshot-and-stream.md",
    "docs/how-to/social-providers.md",
    "docs/how-to/translate.md",
    "docs/how-to/upgrade.md",
    "docs/how-to/ws-federation-applications.md",
    "docs/index.md",
    "docs/performance.md",
    "docs/reference",
    "docs/security.md",
    "docs/third-party-notices.md",
    "docs/tutorials",
    "events",
    "foundation",
    "identity/__init__.py",
    "identity/api",
    "identity/apps.py",
    "identity/audit",
    "identity/breaches",
    "identity/checks.py",
    "identity/documents",
    "identity/exports",
    "identity/factors",
    "identity/hashers.py",
    "identity/hosts.py",
    "identity/imports",
    "identity/job_rights.py",
    "identity/languages.py",
    "identity/mail",
    "identity/management",
    "identity/messages",
    "identity/models",
    "identity/option_redaction.py",
    "identity/options",
    "identity/passwords.py",
    "identity/purging.py",
    "identity/search",
    "identity/services",
    "identity/shapes.py",
    "identity/staff_roles.py",
    "identity/tasks.py",
    "manage.py",
    "tests/config/test_plain_english.py",
    "tests/events",
    "tests/faults",
    "tests/foundation",
)
_SUFFIXES = frozenset({".py", ".md", ".html", ".txt"})


def files_below(root: Path, paths: tuple[str, ...]) -> Iterator[str]:
    """Yield the files with texts at or below the paths, relative to `root`. Raises `FileNotFoundError` for a missing path.

    Migrations are left out: they stay as they were released, and their bytes are part of the digest of the schema.
    """
    for path in paths:
        place = root / path
        if not place.exists():
            raise FileNotFoundError(f"config.plain_english lists {path}, which does not exist.")
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.suffix in _SUFFIXES and "migrations" not in file.parts:
                yield file.relative_to(root).as_posix()


def findings(root: Path, paths: tuple[str, ...]) -> Iterator[str]:
    """Yield a line for each refused word in the files at or below the paths: place, words and advice."""
    for path in files_below(root, paths):
        for text in texts_of(path, (root / path).read_text()):
            for index, words, advice in refused(path, text.content):
                line = text.line + text.content.count("\n", 0, index)
                yield f"{path}:{line}: {words!r}: {advice}"
