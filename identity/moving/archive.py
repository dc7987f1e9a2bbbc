"""An archive: a directory with encrypted parts, and a manifest that lists them with their digests.

While the export runs, `progress.jsonl` lists the finished parts. A part gets its final file name before its line is written, so a killed
export continues after its last line. At the end, the manifest replaces `progress.jsonl`: an archive without a manifest is incomplete.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from foundation.durable_files import directory_to_disk, file_to_disk
from identity.moving.failures import BadArchive
from identity.moving.journey import Journey, NotSealedSo, new_key

FORMAT = 1
_MANIFEST, _PROGRESS, _PARTS = "manifest.json", "progress.jsonl", "parts"
# A part is compressed for the disk and the network; level 1 takes a quarter of the time of the usual level.
_LEVEL = 1
_LENGTH_BYTES = 8


@dataclass(frozen=True)
class Part:
    """Rows of one table. `last` is the primary key of the last row, after which the next part begins."""

    number: int
    table: str
    is_late: bool
    rows: int
    last: str
    sha256: str
    # Sum of the keyed digests of the part's encrypted values, computed from the decrypted values.
    secret_sum: str
    secrets: int

    @property
    def name(self) -> str:
        return f"{self.number:06d}-{self.table}{'-late' if self.is_late else ''}"

    @property
    def place(self) -> str:
        return f"part:{self.number}:{self.table}:{self.is_late}"


@dataclass(frozen=True)
class Contents:
    """The rows of a part in PostgreSQL's text format, and the decrypted values of its encrypted columns."""

    rows: bytes = field(repr=False)
    secrets: list[Any] = field(repr=False)


@dataclass
class Draft:
    """An archive that is being written: the values that are fixed at its beginning, and the finished parts."""

    directory: Path
    archive_id: str
    tenant_id: str
    journey: Journey = field(repr=False)
    stop: str
    before: dict[str, Any]
    parts: list[Part] = field(default_factory=list)

    def add(self, contents: Contents, **facts: Any) -> Part:
        """Write the next part to the disk, then its line in the list of finished parts."""
        part = Part(number=len(self.parts) + 1, sha256="", **facts)
        sealed = self.journey.seal(zlib.compress(_packed(contents), _LEVEL), place=part.place)
        part = Part(**{**asdict(part), "sha256": hashlib.sha256(sealed).hexdigest()})
        (self.directory / _PARTS).mkdir(mode=0o700, exist_ok=True)
        _write(self.directory / _PARTS / part.name, sealed)
        _append(self.directory / _PROGRESS, asdict(part))
        self.parts.append(part)
        return part

    def finish(self, facts: dict[str, Any]) -> None:
        """Write the manifest, which makes the archive complete."""
        shown = {
            "format": FORMAT,
            "archive": self.archive_id,
            "tenant": self.tenant_id,
            "key_check": self.journey.check,
            "parts": [asdict(part) for part in self.parts],
        }
        sealed = self.journey.seal(json.dumps(facts).encode(), place=_manifest_place(shown))
        _write(self.directory / _MANIFEST, json.dumps({**shown, "sealed": sealed.hex()}, indent=1).encode())
        (self.directory / _PROGRESS).unlink(missing_ok=True)


@dataclass(frozen=True)
class Archive:
    """A complete archive. The manifest was verified with the journey key; the bytes of a part are checked when the part is read."""

    directory: Path
    archive_id: str
    tenant_id: str
    journey: Journey = field(repr=False)
    facts: dict[str, Any] = field(repr=False)
    parts: tuple[Part, ...] = field(repr=False)

    def check_parts(self) -> Iterator[Part]:
        """Compare every part with its digest, and yield the part. Raises `BadArchive`."""
        for part in self.parts:
            self._bytes_of(part)
            yield part

    def contents(self, part: Part) -> Contents:
        """Return the contents of a part. Raises `BadArchive`."""
        try:
            content = zlib.decompress(self.journey.unseal(self._bytes_of(part), place=part.place))
        except (NotSealedSo, zlib.error) as error:
            raise BadArchive(f"The part {part.name} cannot be decrypted: it belongs to another archive.") from error
        length = int.from_bytes(content[:_LENGTH_BYTES])
        secrets = json.loads(content[_LENGTH_BYTES : _LENGTH_BYTES + length])
        return Contents(content[_LENGTH_BYTES + length :], secrets)

    def _bytes_of(self, part: Part) -> bytes:
        try:
            sealed = (self.directory / _PARTS / part.name).read_bytes()
        except OSError as error:
            raise BadArchive(f"The part {part.name} cannot be read: {error.strerror}. Copy the archive again.") from error
        if hashlib.sha256(sealed).hexdigest() != part.sha256:
            raise BadArchive(f"The bytes of the part {part.name} have changed: its digest differs. Copy the archive again.")
        return sealed


def begin(directory: Path, *, archive_id: str, tenant_id: str, journey: Journey, stop: str, before: dict[str, Any]) -> Draft:
    """Begin an archive in a directory that is new or empty. `stop` identifies the stop of the tenant. Raises `BadArchive`."""
    directory.mkdir(parents=True, exist_ok=True)
    # An export that was killed while it wrote the first line has left only this temporary file.
    if {path.name for path in directory.iterdir()} - {f"{_PROGRESS}.new"}:
        raise BadArchive(f"{directory} is not empty. Use another directory, or delete this directory first.")
    first = {"archive": archive_id, "tenant": tenant_id, "key_check": journey.check, "stop": stop, "before": before}
    _write(directory / _PROGRESS, _line(first))
    return Draft(directory, archive_id, tenant_id, journey, stop, before)


def is_begun(directory: Path) -> bool:
    """Tell whether the directory contains an incomplete archive."""
    return (directory / _PROGRESS).exists() and not is_complete(directory)


def is_complete(directory: Path) -> bool:
    """Tell whether the directory contains a complete archive."""
    return (directory / _MANIFEST).exists()


def resume(directory: Path, *, tenant_id: str, key: str) -> Draft:
    """Continue an incomplete archive. A line that was cut off by a crash is ignored. Raises `BadArchive`."""
    lines = list(_lines(directory / _PROGRESS))
    if not lines or lines[0].get("tenant") != tenant_id:
        raise BadArchive(f"{directory} does not contain an unfinished archive of {tenant_id}.")
    first = lines[0]
    journey = _journey(key, first)
    draft = Draft(directory, first["archive"], tenant_id, journey, first["stop"], first["before"], [Part(**line) for line in lines[1:]])
    # Remove an incomplete last line, so that the next line is not appended to it.
    _write(directory / _PROGRESS, b"".join(_line(line) for line in lines))
    return draft


def open_archive(directory: Path, *, key: str) -> Archive:
    """Open a complete archive with its journey key. Raises `BadArchive`."""
    if is_begun(directory):
        raise BadArchive(f"The archive in {directory} is incomplete: run the export again to continue it.")
    try:
        shown = json.loads((directory / _MANIFEST).read_bytes())
        sealed = bytes.fromhex(shown.pop("sealed"))
        found = shown["format"]
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise BadArchive(f"{directory} does not contain an archive: {_MANIFEST} cannot be read.") from error
    if found != FORMAT:
        raise BadArchive(f"The archive has the format {found}; this version reads the format {FORMAT}.")
    journey = _journey(key, shown)
    try:
        facts = json.loads(journey.unseal(sealed, place=_manifest_place(shown)))
    except NotSealedSo as error:
        raise BadArchive("The manifest has changed since the export. Copy the archive again.") from error
    return Archive(directory, shown["archive"], shown["tenant"], journey, facts, tuple(Part(**part) for part in shown["parts"]))


def read_key(path: Path) -> str:
    """Read a journey key. Raises `BadArchive`."""
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadArchive(f"The journey key cannot be read from {path}.") from error


def read_or_make_key(path: Path, *, archive: Path) -> tuple[str, bool]:
    """Read a journey key, or write a new key that only its owner can read. Return the key, and whether the key is new.

    Raises `BadArchive`.
    """
    if path.resolve().is_relative_to(archive.resolve()):
        raise BadArchive("Keep the journey key outside the archive: anyone with the key and the archive can read the tenant's secrets.")
    if path.exists():
        return read_key(path), False
    key = new_key()
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{key}\n")
    return key, True


def _journey(key: str, shown: dict[str, Any]) -> Journey:
    try:
        journey = Journey(key, str(shown.get("archive")))
    except ValueError as error:
        raise BadArchive(str(error)) from error
    if journey.check != shown.get("key_check"):
        raise BadArchive("The journey key does not belong to this archive.")
    return journey


def _manifest_place(shown: dict[str, Any]) -> str:
    return f"manifest:{json.dumps(shown, sort_keys=True)}"


def _packed(contents: Contents) -> bytes:
    secrets = json.dumps(contents.secrets).encode()
    return len(secrets).to_bytes(_LENGTH_BYTES) + secrets + contents.rows


def _write(path: Path, content: bytes) -> None:
    """Write a file that is complete or absent after a crash."""
    beside = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file_to_disk(file)
    beside.replace(path)
    directory_to_disk(path.parent)


def _append(path: Path, line: dict[str, Any]) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
        file.write(_line(line))
        file_to_disk(file)


def _line(line: dict[str, Any]) -> bytes:
    return json.dumps(line).encode() + b"\n"


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        content = path.read_bytes()
    except OSError:
        return
    for line in content.splitlines(keepends=True):
        if line.endswith(b"\n"):
            yield json.loads(line)
