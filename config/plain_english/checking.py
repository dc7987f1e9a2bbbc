"""The paths that are checked, and the findings in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from config.plain_english.rules import refused
from config.plain_english.texts import texts_of

ROOT = Path(__file__).resolve().parents[2]
# Paths whose texts are checked. Add a path as soon as its texts are clean.
CLEAN = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "authapi/accounts",
    "authapi/admin",
    "authapi/api",
    "authapi/apps.py",
    "authapi/client_auth",
    "authapi/clients",
    "authapi/compliance",
    "authapi/custom_texts.py",
    "authapi/details",
    "authapi/drf.py",
    "authapi/edge",
    "authapi/expiry.py",
    "authapi/factors",
    "authapi/invitations",
    "authapi/login",
    "authapi/logs",
    "authapi/looks",
    "authapi/management",
    "authapi/management_scopes.py",
    "authapi/pages",
    "authapi/protocols",
    "authapi/row_acts.py",
    "authapi/tasks.py",
    "authapi/templatetags",
    "authapi/tenant_settings.py",
    "benchmarks",
    "config/console",
    "config/launcher",
    "config/manual",
    "config/plain_english",
    "config/schema",
    "config/server",
    "config/settings",
    "docs/adr",
    "docs/explanation",
    "docs/figures.md",
    "docs/glossary.md",
    "docs/guarantees.md",
    "docs/house-tour.md",
    "docs/how-to/account-page.md",
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
    "docs/how-to/kubernetes.md",
    "docs/how-to/log-out-everywhere.md",
    "docs/how-to/mails-and-messages.md",
    "docs/how-to/old-clients.md",
    "docs/how-to/passkeys.md",
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
    "docs/how-to/second-factors-at-login.md",
    "docs/how-to/second-factors-in-your-own-login.md",
    "docs/how-to/second-factors.md",
    "docs/how-to/set-retention.md",
    "docs/how-to/several-hosts.md",
    "docs/how-to/snapshot-and-stream.md",
    "docs/how-to/social-providers.md",
    "docs/how-to/translate.md",
    "docs/how-to/upgrade.md",
    "docs/how-to/ws-federation-applications.md",
    "docs/index.md",
    "docs/performance.md",
    "docs/reference/errors.md",
    "docs/reference/events",
    "docs/reference/metrics.md",
    "docs/reference/settings.md",
    "docs/reference/stream-tests.md",
    "docs/security.md",
    "docs/third-party-notices.md",
    "docs/tutorials",
    "events",
    "foundation",
    "identity/admin",
    "provisioning",
    "templates/400.html",
    "templates/403.html",
    "templates/403_csrf.html",
    "templates/404.html",
    "templates/500.html",
    "templates/admin",
    "templates/api_browser.html",
    "templates/error_page.html",
    "templates/hosted",
    "templates/mail",
    "templates/oidc",
    "templates/sms",
    "tests/architecture",
    "tests/authapi",
    "tests/composed_keys.py",
    "tests/config",
    "tests/conformance",
    "tests/conftest.py",
    "tests/databases.py",
    "tests/deadlines.py",
    "tests/depth.py",
    "tests/distribution.py",
    "tests/django_clients.py",
    "tests/docs",
    "tests/events",
    "tests/factories",
    "tests/faults",
    "tests/following.py",
    "tests/foundation",
    "tests/identity",
    "tests/journeys",
    "tests/kustomize.py",
    "tests/management.py",
    "tests/name_server.py",
    "tests/peers",
    "tests/provisioning",
    "tests/servers.py",
    "tests/terminal.py",
    "tests/test_alert_rules.py",
    "tests/test_dashboards.py",
    "tests/test_distribution.py",
    "tests/test_kubernetes.py",
    "tests/test_turns.py",
    "tests/test_tutorials.py",
    "tests/turns.py",
    "tests/tutorials.py",
    "tests/unrun.py",
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
