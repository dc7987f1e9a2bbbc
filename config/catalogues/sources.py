"""Finds the files with texts for users, the texts in them, and the placeholders of each text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from babel.messages.extract import extract_python
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parents[2]
# Texts of the admin, of operators and of the management interface are English and in no catalogue.
_FOLDERS = ("foundation", "identity", "authapi", "events", "provisioning", "templates")
_ENGLISH = ("templates/admin", "identity/admin", "authapi/admin", "events/admin", "provisioning/admin", "foundation/admin")
_TEMPLATES = (".html", ".txt", ".jinja")
# The translation functions of Django.
_FUNCTIONS = (
    "_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy", "pgettext", "pgettext_lazy", "npgettext", "npgettext_lazy",
)  # fmt: skip
_COMMENT = "Translators:"


@dataclass(frozen=True)
class Text:
    """One text of the source. A context distinguishes two meanings of the same words. A text with a number can have a plural."""

    singular: str
    plural: str = ""
    context: str = ""
    comments: tuple[str, ...] = ()
    place: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The key of the text in a catalogue."""
        return self.context, self.singular


def source_files(root: Path = ROOT) -> Iterator[Path]:
    """Yield the files that may contain texts, in a stable order."""
    for folder in _FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            place = path.relative_to(root).as_posix()
            if path.suffix in (".py", *_TEMPLATES) and not place.startswith(_ENGLISH) and "/migrations/" not in place:
                yield path


def texts_of_source(root: Path = ROOT) -> dict[tuple[str, str], Text]:
    """Return every text of the source by its key. Raises `ValueError` if two files have different plurals for a text."""
    found: dict[tuple[str, str], Text] = {}
    for path in source_files(root):
        for text in texts_of_file(path, root):
            known = found.setdefault(text.key, text)
            if known.plural and text.plural and known.plural != text.plural:
                raise ValueError(f"{text.place} and {known.place} have two plurals of {text.singular!r}.")
            if text.plural and not known.plural:
                found[text.key] = text
    return found


def texts_of_file(path: Path, root: Path = ROOT) -> Iterator[Text]:
    """Yield the texts of a Python file or of a template."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        if "gettext" not in source:
            return
    else:
        source = _python_of(source, path)
    yield from _texts_of_python(source, path.relative_to(root).as_posix())


def _python_of(template: str, path: Path) -> str:
    """Convert a template to Python calls with its texts. Strips indentation, which Python would reject."""
    return "\n".join(line.strip() for line in templatize(template, origin=str(path)).splitlines())


def _texts_of_python(source: str, place: str) -> Iterator[Text]:
    # The declared types require all options of a gettext program; the function reads only `encoding`.
    extract: Any = extract_python
    for line, function, arguments, comments in extract(BytesIO(source.encode()), _FUNCTIONS, [_COMMENT], {"encoding": "utf-8"}):
        # A None argument is a variable or an f-string.
        texts = [*arguments] if isinstance(arguments, tuple) else [arguments]
        text = _text_of(function, texts)
        if text is not None:
            yield Text(text.singular, text.plural, text.context, tuple(comments), f"{place}:{line}")


def _text_of(function: str, arguments: list[str | None]) -> Text | None:
    """Return the text of a call; None if the argument is a variable. The text of a variable is found at the call that marks its literal."""
    context = ""
    if function.startswith(("p", "np")):
        context, arguments = arguments[0] or "", arguments[1:]
    if not arguments or not arguments[0]:
        return None
    plural = arguments[1] if "ngettext" in function or "npgettext" in function else ""
    return Text(arguments[0], plural or "", context)


_PLACEHOLDER = re.compile(r"%\((\w+)\)[sd]|\{(\w*)\}|\$\{(\w+)\}|(%%)")
_MARKUP = re.compile(r"</?[a-z]+>")


def placeholders_of(text: str) -> set[str]:
    """Return the placeholders and HTML tags of a text. A translation must have the same placeholders and tags."""
    return {match.group() for match in _PLACEHOLDER.finditer(text)} | set(_MARKUP.findall(text))
