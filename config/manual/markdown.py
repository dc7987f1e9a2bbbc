"""The Markdown building blocks of generated pages. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]*`)")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, without a final line break."""
    lines = [_line(head), "|---" * len(head) + "|", *(_line(row) for row in rows)]
    return "\n".join(lines)


def code(value: str) -> str:
    """Return the value as code, or an empty text for an empty value."""
    return f"`{value}`" if value else ""


def codes(values: Iterable[str]) -> str:
    """Return several values as code, with commas between them."""
    return ", ".join(code(value) for value in values)


def fence(language: str, text: str) -> str:
    """Return a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def page(*blocks: str) -> str:
    """Join blocks with an empty line between them; empty blocks are omitted."""
    return "\n\n".join(block.strip("\n") for block in blocks if block) + "\n"


def contents() -> str:
    """Return the table of contents that makes a page the parent of all other pages in its directory."""
    return fence("{toctree}", ":glob:\n:hidden:\n\n*")


def prose(text: str) -> str:
    """Return text of the source with its tags escaped."""
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in _CODE.split(text))


def _line(cells: Sequence[str]) -> str:
    # A bar would end the cell, even inside code.
    return "| " + " | ".join(prose(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
