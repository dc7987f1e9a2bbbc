"""The catalogues: every text of the source is translated into every language, and the compiled files match the texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.catalogues.catalogues import Catalogue, merged, translated_languages
from config.catalogues.judging import SAME, problems_of, problems_of_files
from config.catalogues.sources import Text, placeholders_of, texts_of_file, texts_of_source

LANGUAGES = translated_languages()
TEXTS = texts_of_source()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_translated_with_its_placeholders(language: str) -> None:
    assert list(problems_of(language, merged(language, TEXTS), TEXTS)) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_files_match_the_output_of_make_messages(language: str) -> None:
    assert list(problems_of_files(language, TEXTS)) == []


def test_every_text_that_may_stay_english_exists_in_the_source() -> None:
    known = {text.singular for text in TEXTS.values()}
    assert {text for texts in SAME.values() for text in texts} <= known
    assert set(SAME) == set(LANGUAGES)


# --- The check finds faults ----------------------------------------------------------------------------------------------------


def judged(language: str, text: Text, string: str | tuple[str, ...], *, flags: tuple[str, ...] = ()) -> str:
    catalogue = Catalogue(language)
    catalogue.add((text.singular, text.plural) if text.plural else text.singular, string=string, flags=flags, context=text.context or None)
    return "\n".join(problems_of(language, catalogue, {text.key: text}))


HELLO = Text("Hello %(name)s.")
COUNT = Text("%(count)d minute.", "%(count)d minutes.")


def test_a_term_has_one_translation_in_spanish() -> None:
    told = judged("es", Text("Make a passkey"), "Crear una clave de acceso")
    assert "must not contain 'clave de acceso': write 'llave de acceso' instead" in told
    assert judged("es", Text("Make a passkey"), "Crear una llave de acceso") == ""


@pytest.mark.parametrize(
    ("string", "complaint"),
    [
        ("", "not translated"),
        ("  ", "not translated"),
        ("Hello %(name)s.", "the same as in English"),
        ("Hallo.", "placeholders"),
        ("Hallo %(vorname)s.", "placeholders"),
        ("Hallo %(name)d.", "placeholders"),
        ("Hallo %(name)s. %(name)s %%", "placeholders"),
        ("Hallo <b>%(name)s</b>.", "placeholders"),
        (" Hallo %(name)s. ", "spaces around"),
        ("\nHallo %(name)s.", "line break"),
        ("Hallo %(name)s.Hallo %(name)s.", "the same text twice"),
    ],
)
def test_a_translation_with_a_fault_is_reported(string: str, complaint: str) -> None:
    assert complaint in judged("de", HELLO, string)
    assert judged("de", HELLO, "Hallo %(name)s.") == ""


def test_a_fuzzy_translation_is_a_fault() -> None:
    assert "fuzzy" in judged("de", HELLO, "Hallo %(name)s.", flags=("fuzzy",))


def test_a_missing_plural_form_is_a_fault() -> None:
    assert "not translated" in judged("ar", COUNT, ("صفر", "دقيقة", "دقيقتان", "%(count)d دقائق", "%(count)d دقيقة", ""))
    assert judged("ar", COUNT, ("لا دقائق", "دقيقة", "دقيقتان", "%(count)d دقائق", "%(count)d دقيقة", "%(count)d دقيقة")) == ""
    assert "placeholders" in judged("de", COUNT, ("eine Minute", "%(anzahl)d Minuten"))


def test_a_translation_in_the_letters_of_another_language_is_a_fault() -> None:
    assert "no letter of the language" in judged("ja", HELLO, "Bonjour %(name)s.")
    assert "no letter of the language" in judged("ar", HELLO, "Hallo %(name)s.")


def test_an_unused_text_and_a_missing_text_are_found() -> None:
    catalogue = Catalogue("de")
    catalogue.add("Gone.", string="Weg.")
    said = "\n".join(problems_of("de", catalogue, {HELLO.key: HELLO}))
    assert "'Gone.' is obsolete" in said
    assert "missing, run make messages: 'Hello %(name)s.'" in said


# --- Finding texts ---------------------------------------------------------------------------------------------------------------


def found(tmp_path: Path, name: str, source: str) -> list[tuple[str, str, str]]:
    path = tmp_path / name
    path.write_text(source, encoding="utf-8")
    return [(text.context, text.singular, text.plural) for text in texts_of_file(path, tmp_path)]


def test_texts_of_templates_are_found_with_any_indentation(tmp_path: Path) -> None:
    template = """{% load i18n %}
      {% if a %}
    <p title="{% translate 'One' %}">it's {{ _("Two")|upper }}</p>
  {% blocktranslate trimmed with who=user.name %}
      Three of
        {{ who }}
      {% endblocktranslate %}
            {% blocktranslate count number=list|length %}one{% plural %}{{ number }} many{% endblocktranslate %}
    {% translate "Four" context "card" %}
"""
    assert found(tmp_path, "page.html", template) == [
        ("", "One", ""),
        ("", "Two", ""),
        ("", "Three of %(who)s", ""),
        ("", "one", "%(number)s many"),
        ("card", "Four", ""),
    ]


def test_texts_of_code_are_found_and_variables_are_not(tmp_path: Path) -> None:
    code = """from django.utils.translation import gettext as _, gettext_lazy, ngettext, pgettext
a = _("One" " and half"), gettext_lazy("Two"), _(name), _(f"no {name}")
b = ngettext("%(n)d thing", "%(n)d things", n), pgettext("card", "Four")
"""
    assert found(tmp_path, "code.py", code) == [
        ("", "One and half", ""),
        ("", "Two", ""),
        ("", "%(n)d thing", "%(n)d things"),
        ("card", "Four", ""),
    ]


def test_the_admin_is_english_and_has_no_texts_in_the_catalogues() -> None:
    assert not [text.place for text in TEXTS.values() if "admin/" in text.place]


def test_placeholders_of_every_kind_are_compared() -> None:
    assert placeholders_of("%(a)s %(b)d {c} ${d} %% <strong>x</strong>") == {
        "%(a)s", "%(b)d", "{c}", "${d}", "%%", "<strong>", "</strong>",
    }  # fmt: skip
