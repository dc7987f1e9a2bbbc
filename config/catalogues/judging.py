"""Checks of catalogues: whether an entry has no translation or a wrong translation.

The test of the catalogues and `make messages` share these checks.
"""

from __future__ import annotations

from collections.abc import Iterator

from babel.messages.catalog import Message

from config.catalogues.catalogues import Catalogue, as_mo, as_po, ids_of, merged, path_of, strings_of
from config.catalogues.sources import Text, placeholders_of

# Translations that are identical to the English text, each with the reason.
SAME: dict[str, dict[str, str]] = {
    "de": {
        "(optional)": "The German word is the same.",
        "Code": "The German word is the same.",
        "Name": "The German word is the same.",
        "Passkey": "The German word is the same.",
        "Passkeys": "The German word is the same.",
    },
    "fr": {"Code": "The French word is the same.", "Applications": "The French word is the same."},
    "es": {
        "Error": "The Spanish word is the same.",
        "Error:": "The Spanish word is the same.",
        "No": "The Spanish word is the same.",
    },
    "ja": {},
    "ar": {},
}
# Words that translators must replace by another word, so that all pages of a language use one term.
OTHER_WORDS: dict[str, dict[str, str]] = {"es": {"clave de acceso": "llave de acceso", "claves de acceso": "llaves de acceso"}}
_SCRIPTS = {"ja": ("\u3040", "\u9fff"), "ar": ("\u0600", "\u06ff")}


def problems_of(language: str, catalogue: Catalogue, texts: dict[tuple[str, str], Text]) -> Iterator[str]:
    """Yield a message for each text that is missing, obsolete, untranslated or wrong."""
    for key in texts:
        if catalogue.get(key[1], context=key[0] or None) is None:
            yield f"{language}: missing, run make messages: {key[1]!r}"
    for message in catalogue:
        if message.id:
            yield from _problems_of_message(language, message, texts)
    for obsolete in catalogue.obsolete.values():
        yield f"{language}: obsolete, run make messages: {ids_of(obsolete)[0]!r}"


def problems_of_files(language: str, texts: dict[tuple[str, str], Text]) -> Iterator[str]:
    """Yield a message for each file that differs from the output of `make messages`."""
    catalogue, path = merged(language, texts), path_of(language)
    for file, expected in ((path, as_po(catalogue)), (path.with_suffix(".mo"), as_mo(catalogue))):
        if not file.exists() or file.read_bytes() != expected:
            yield f"{language}: {file.name} differs from the output of make messages"


def _problems_of_message(language: str, message: Message, texts: dict[tuple[str, str], Text]) -> Iterator[str]:
    english, strings = ids_of(message), strings_of(message)
    said = f"{language}: {english[0]!r}"
    if (message.context or "", english[0]) not in texts:
        yield f"{said} is obsolete, run make messages"
    if message.fuzzy:
        yield f"{said} is fuzzy"
    if not all(text.strip() for text in strings):
        yield f"{said} is not translated"
        return
    if english[0] in strings and english[0] not in SAME[language]:
        yield f"{said} is the same as in English; if that is correct, add the reason to SAME"
    for text in strings:
        yield from (f"{said} {problem}" for problem in (*_differences(language, english, text), *_odd_words(language, text)))


def _differences(language: str, english: tuple[str, ...], text: str) -> Iterator[str]:
    wanted, found = placeholders_of(english[-1]), placeholders_of(text)
    # A text such as "One minute" has no number, so its singular, dual and zero forms may omit the placeholder.
    if found != wanted and not (len(english) > 1 and found < wanted):
        yield f"has the placeholders {sorted(found)} instead of {sorted(wanted)}: {text!r}"
    if english[0].startswith("\n") != text.startswith("\n") or english[0].endswith("\n") != text.endswith("\n"):
        yield f"differs from the English text in a line break at the beginning or the end: {text!r}"
    if text != text.strip() and english[0] == english[0].strip():
        yield f"has spaces around it: {text!r}"
    first, last = _SCRIPTS.get(language, ("", ""))
    if first and english[0] not in SAME[language] and not any(first <= letter <= last for letter in text):
        yield f"has no letter of the language: {text!r}"


def _odd_words(language: str, text: str) -> Iterator[str]:
    half = len(text) // 2
    if half and text[:half].strip() == text[half:].strip():
        yield f"contains the same text twice: {text!r}"
    for wrong, right in OTHER_WORDS.get(language, {}).items():
        if wrong in text.lower():
            yield f"must not contain {wrong!r}: write {right!r} instead"
