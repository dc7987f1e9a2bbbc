"""Reads, merges, writes and compiles the catalogues below `locale`. Repeated runs write identical bytes."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import PoFileParser, write_po
from django.conf import settings

from config.catalogues.sources import Text

# The plural rules of GNU gettext, which Django's own catalogues also use.
_PLURALS = {
    "de": (2, "(n != 1)"),
    "fr": (2, "(n > 1)"),
    "es": (2, "(n != 1)"),
    "ja": (1, "0"),
    "ar": (6, "n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 && n%100<=99 ? 4 : 5"),
}
_HEADER = "# Texts of hosted pages, mails and messages. Written by `make messages`; glossary: docs/how-to/translate.md.\n#"


class Catalogue(Catalog):
    """A catalogue whose header has no times, names or programs: such values would change the files at every run."""

    def __init__(self, language: str) -> None:
        self._language = language
        super().__init__(locale=language, fuzzy=False)
        # Replace the plural rules of Babel by the rules that Django uses.
        self._num_plurals, self._plural_expr = _PLURALS[language]  # type: ignore[assignment]  # declared by a None
        self.header_comment = _HEADER

    def _headers(self) -> list[tuple[str, str]]:
        return [
            ("Language", self._language),
            ("MIME-Version", "1.0"),
            ("Content-Type", "text/plain; charset=UTF-8"),
            ("Content-Transfer-Encoding", "8bit"),
            ("Plural-Forms", self.plural_forms),
        ]

    def _take_headers(self, headers: object) -> None:
        """Ignore the header of a file."""

    mime_headers = property(_headers, _take_headers)


def translated_languages() -> tuple[str, ...]:
    """Return the languages that need a catalogue: all except English, the language of the source."""
    return tuple(code for code, _ in settings.LANGUAGES if code != settings.LANGUAGE_CODE)


def path_of(language: str) -> Path:
    """Return the path of the file that translators edit."""
    return Path(settings.LOCALE_PATHS[0]) / language / "LC_MESSAGES" / "django.po"


def read_catalogue(language: str) -> Catalogue:
    """Return a catalogue with its obsolete texts; an empty catalogue if the file does not exist. Raises an error for a malformed file."""
    catalogue, path = Catalogue(language), path_of(language)
    if path.exists():
        PoFileParser(catalogue, abort_invalid=True).parse(path.read_text(encoding="utf-8").splitlines(keepends=True))
        catalogue.header_comment = _HEADER
    return catalogue


def merged(language: str, texts: dict[tuple[str, str], Text]) -> Catalogue:
    """Return the catalogue with exactly the texts of the source: obsolete texts are dropped, new texts have no translation.

    There is no fuzzy matching of similar texts, because pages would show a guessed translation as if it were checked. If a text
    gains a plural, its translation is dropped.
    """
    known, fresh = read_catalogue(language), Catalogue(language)
    for text in texts.values():
        old = known.get(text.singular, context=text.context or None)
        is_kept = old is not None and isinstance(old.id, tuple) == bool(text.plural) and not old.fuzzy
        fresh.add(
            (text.singular, text.plural) if text.plural else text.singular,
            string=old.string if old is not None and is_kept else None,
            flags=["python-format"] if "%(" in text.singular else [],
            auto_comments=text.comments,
            user_comments=old.user_comments if old is not None else (),
            context=text.context or None,
            # Omit line numbers, so that moved code changes no catalogue.
            locations=[(text.place.rpartition(":")[0], 0)],
        )
    return fresh


def write_catalogue(language: str, catalogue: Catalog) -> None:
    """Write a catalogue and its compiled form."""
    path = path_of(language)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(as_po(catalogue))
    path.with_suffix(".mo").write_bytes(as_mo(catalogue))


def as_po(catalogue: Catalog) -> bytes:
    """Return a catalogue for translators, grouped by source file."""
    file = BytesIO()
    write_po(file, catalogue, width=132, sort_by_file=True, ignore_obsolete=True, include_lineno=False)
    return file.getvalue()


def as_mo(catalogue: Catalog) -> bytes:
    """Return a catalogue in the compiled form of gettext."""
    file = BytesIO()
    write_mo(file, catalogue)
    return file.getvalue()


def strings_of(message: Message) -> tuple[str, ...]:
    """Return the translations of a text: one, or one for each plural form."""
    return tuple(message.string) if isinstance(message.string, tuple | list) else (message.string or "",)


def ids_of(message: Message) -> tuple[str, ...]:
    """Return the English text: singular, and plural if there is one."""
    return tuple(message.id) if isinstance(message.id, tuple | list) else (message.id,)
