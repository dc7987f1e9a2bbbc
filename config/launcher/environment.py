"""The environment of the service's processes, and the file through which commands in another terminal find the same servers."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from config.launcher import keys, postgres, valkey
from config.launcher.directories import write_private
from config.launcher.options import DEMO_TENANT, Options

RETRY_DELAYS = "1,2,4"
# Mails and text messages, one file for each.
OUTBOX = "outbox"


def compose(options: Options) -> dict[str, str]:
    """Return every variable that `make up` sets; a variable of the caller's environment takes precedence."""
    secrets = keys.load_or_create(options.data_dir)
    decided = {
        "DATA_DIR": str(options.data_dir),
        "DATABASE_URL": options.database_url or postgres.url_of(options.data_dir),
        "REDIS_URL": options.redis_url or valkey.url_of(options.data_dir),
        **{name: secrets[name] for name in keys.KEY_LISTS},
        "INSECURE_HTTP": "0" if options.is_tls else "1",
        "PLATFORM_HOST": "localhost",
        "LOCALHOST_TENANT": DEMO_TENANT,
        "DELIVERY_RETRY_DELAYS": RETRY_DELAYS,
        # The demo's SCIM server runs on this machine and uses plain http.
        "OUTBOUND_ALLOW_HTTP": "1",
        "OUTBOUND_PRIVATE_NETWORKS": "127.0.0.0/8,::1/128",
        "PROMETHEUS_MULTIPROC_DIR": str(options.data_dir / "metrics"),
        "EMAIL_URL": f"file:{quote(str(options.data_dir / OUTBOX))}",
        "SMS_URL": f"file:{quote(str(options.data_dir / OUTBOX))}",
    }
    return {name: os.environ.get(name) or value for name, value in decided.items()}


def forget_counts(decided: dict[str, str]) -> None:
    """Remove the files with the metrics of earlier processes; otherwise these files would accumulate."""
    for file in Path(decided["PROMETHEUS_MULTIPROC_DIR"]).glob("*.db"):
        file.unlink()


def write(options: Options, decided: dict[str, str]) -> None:
    """Write `.data/environment` (mode 0600), which the development settings read."""
    write_private(options.data_dir / "environment", keys.as_assignments(decided))


def for_processes(decided: dict[str, str]) -> dict[str, str]:
    """Return the whole environment of a process of the service."""
    return {
        **os.environ,
        **decided,
        "DJANGO_SETTINGS_MODULE": "config.settings.development",
        # Output is unbuffered, so that lines appear when they are written.
        "PYTHONUNBUFFERED": "1",
    }
