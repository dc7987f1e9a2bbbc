"""Private paths: the data directory, and a directory for sockets whose path is short enough."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import stat
import tempfile
from pathlib import Path

# A socket path may have 107 bytes; PostgreSQL appends `/.s.PGSQL.5432.lock`.
_LONGEST_SOCKET_DIRECTORY = 85
# Everything that `make up` puts into the data directory; temporary files begin with a dot.
_MADE_HERE = re.compile(
    r"\.?(beat|demo\.json|environment|keys|lock|metrics|outbox|postgres|redis|run|scim|tls|up\.env|up\.json|up\.log)(\.[0-9]+)?"
)


class NotPrivate(Exception):
    """A directory that must be private belongs to another account."""


def make_private(directory: Path, *, account: str | None = None) -> Path:
    """Create `directory` with mode 0700, owned by `account` if given. Raises `NotPrivate` if another account owns the directory."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner = pwd.getpwnam(account).pw_uid if account else os.geteuid()
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {owner, os.geteuid()}:
        raise NotPrivate(f"{directory} belongs to another account; remove it and start again.")
    directory.chmod(0o700)
    if found.st_uid != owner:
        os.chown(directory, owner, -1)
    return directory


def socket_directory(data_dir: Path, name: str, *, account: str | None = None) -> Path:
    """Return a private directory for sockets: inside `data_dir`, or in the temporary directory if `data_dir` has a long path."""
    inside = data_dir / "run" / name
    if len(os.fsencode(inside)) <= _LONGEST_SOCKET_DIRECTORY:
        return make_private(inside, account=account)
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:12]
    return make_private(Path(tempfile.gettempdir()) / f"identity-{os.geteuid()}-{digest}-{name}", account=account)


def strangers(data_dir: Path) -> list[str]:
    """Return the names of the files in the data directory that `make up` did not create."""
    return sorted(entry.name for entry in data_dir.iterdir() if _MADE_HERE.fullmatch(entry.name) is None)


def write_private(path: Path, content: str) -> None:
    """Replace `path` atomically by a file of mode 0600 with this `content`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
    draft.replace(path)
