"""Extracts the texts of a file: comments, docstrings and test names of Python, prose of Markdown, and whole templates. Pure."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

_CODE = re.compile(r"`[^`]*`")
_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_MARKUP = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>|\{\{.*?\}\}", re.DOTALL)


class Text(NamedTuple):
    """One text of a file, and the line (from 1) on which it starts. Code in the text is left out, except for its line breaks."""

    line: int
    content: str


def texts_of(path: str, source: str) -> Iterator[Text]:
    """Yield the texts of a file; the suffix of the path selects the parser, and a file with an unknown suffix has no texts.

    Raises `SyntaxError` for invalid Python.
    """
    if path.endswith(".py"):
        yield from _of_python(source)
    elif path.endswith(".md"):
        yield Text(1, _without(_CODE, _without(_FENCED, source)))
    elif path.endswith((".html", ".txt")):
        yield Text(1, _without(_MARKUP, source))


def _of_python(source: str) -> Iterator[Text]:
    for start, lines in _comments(source):
        yield Text(start, _without(_CODE, "\n".join(lines)))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield Text(node.lineno, _without(_CODE, node.value.value))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield Text(node.lineno, node.name.replace("_", " "))


def _comments(source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each comment with its first line; comments on consecutive lines count as one comment, because sentences span them."""
    start, lines = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if lines and token.start[0] != start + len(lines):
            yield start, lines
            lines = []
        start = start if lines else token.start[0]
        lines.append(token.string.removeprefix("#").strip())
    if lines:
        yield start, lines


def _without(pattern: re.Pattern[str], text: str) -> str:
    """Replace each match by its line breaks, between two bars (`|`). In a text, a bar ends a sentence."""
    return pattern.sub(lambda match: "|" + "\n" * match.group().count("\n") + "|", text)
