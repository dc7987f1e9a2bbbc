"""The keys and passwords of a checkout, created once and stored in `.data/keys` (mode 0600). `make up` shows only demo passwords."""

from __future__ import annotations

import secrets
from pathlib import Path

from config.launcher.directories import write_private

KEY_LISTS = ("SESSION_KEYS", "ENCRYPTION_KEYS", "DIGEST_KEYS", "CURSOR_KEYS")
DEMO_SECRETS = ("DEMO_ADMIN_PASSWORD", "DEMO_CLIENT_SECRET", "DEMO_SCIM_TOKEN", "DEMO_APPLICATION_SECRET", "DEMO_USER_PASSWORD")


def load_or_create(data_dir: Path) -> dict[str, str]:
    """Return every secret of the checkout by name; missing secrets are created and stored."""
    path = data_dir / "keys"
    known = read_assignments(path)
    made = {name: _make(name) for name in (*KEY_LISTS, *DEMO_SECRETS) if name not in known}
    if made:
        write_private(path, as_assignments({**known, **made}))
    return {**known, **made}


def read_assignments(path: Path) -> dict[str, str]:
    """Read lines of the form NAME=value; a file that does not exist is empty."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {name: value for name, separator, value in (line.partition("=") for line in lines) if separator}


def as_assignments(values: dict[str, str]) -> str:
    """Write NAME=value lines."""
    return "".join(f"{name}={value}\n" for name, value in values.items())


def _make(name: str) -> str:
    # Letters, digits, - and _, as in client secrets; Django requires 50 characters for its key. The part before the colon is a random id of
    # the key. If a new key replaced a lost key, its id would differ: the error of a secret that cannot be decrypted names the id of the
    # lost key.
    return f"{secrets.token_hex(4)}:{secrets.token_urlsafe(48)}" if name in KEY_LISTS else secrets.token_urlsafe(32)
