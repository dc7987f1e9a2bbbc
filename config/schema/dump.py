"""The dump of the schema: its file, its sources, and the conversion of `pg_dump` output. Pure, except that it reads files."""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("schema.sql")
# The sources of a schema: the migrations of every app, versions of libraries with migrations, and the modules that define the triggers of
# recorded rows.
_SOURCES = ("*/migrations/*.py", "requirements/base.lock", "events/record/catalogue.py", "events/record/tripwire.py")
# Lines that are removed. Settings in the dump belong to pg_dump's session and must not change the session that restores the dump. Backslash
# commands are for psql, and the dump is restored by psycopg.
_OF_THE_SESSION = re.compile(r"^(?:SET |SELECT pg_catalog\.set_config\(|\\(?:un)?restrict )[^\n]*\n", re.MULTILINE)
_NAMES_OF_SERVERS = re.compile(r"^-- Dumped (?:from|by) [^\n]*\n", re.MULTILINE)
# Django records when a migration ran. These times are replaced, because the dump must be the same on every day.
_APPLIED_AT = re.compile(r"'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^']*'\)")
_HEADER = re.compile(r"-- sources: (?P<sources>[0-9a-f]{64})\n-- server: (?P<server>\d+)\n")


@dataclass(frozen=True)
class SchemaDump:
    """Statements that create the schema in an empty database. `server` is the major version of PostgreSQL for which they were made."""

    sources: str
    server: int
    statements: str

    def text(self) -> str:
        """Return the content of the file."""
        return f"-- sources: {self.sources}\n-- server: {self.server}\n{self.statements}"


def sources_digest() -> str:
    """Return one hexadecimal SHA-256 over all sources of the schema in this checkout, without their comments and docstrings."""
    content = hashlib.sha256()
    for pattern in _SOURCES:
        for file in sorted(ROOT.glob(pattern)):
            text = file.read_text()
            statements = _statements(text) if file.suffix == ".py" else text
            content.update(f"{file.relative_to(ROOT)}\0{statements}\0".encode())
    return content.hexdigest()


def _statements(source: str) -> str:
    """Return a text that changes if a statement of the Python source changes."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [line for line in node.body if not _is_text(line)]
    return ast.dump(tree)


def _is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def read() -> SchemaDump | None:
    """Return the dump of this checkout, or None if the sources have changed since the dump was made."""
    text = FILE.read_text() if FILE.exists() else ""
    header = _HEADER.match(text)
    if header is None or header["sources"] != sources_digest():
        return None
    return SchemaDump(sources=header["sources"], server=int(header["server"]), statements=text[header.end() :])


def statements_of(printed: str) -> str:
    """Return the statements of a printed dump that do not depend on a session, a server or a date.

    `printed` is the output of `pg_dump --inserts`.
    """
    printed = _NAMES_OF_SERVERS.sub("", _OF_THE_SESSION.sub("", printed))
    return re.sub(r"\n{3,}", "\n\n", _APPLIED_AT.sub("now())", printed)).strip() + "\n"
