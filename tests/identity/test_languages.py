"""How the spoken language is chosen: the lookup of requested tags, limits, precedence, and the block in which the language applies."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from identity import languages
from identity.languages import LANGUAGES, asked_in, asked_language, language_for, named_language, speak, speaking, written_time

ENABLED = ("en", "de", "fr", "ja")


def named(*wished: str, header: str = "", enabled: tuple[str, ...] = ENABLED) -> str:
    return named_language(enabled, wished=wished, accept_language=header)


# --- Lookup --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wished", "header", "found"),
    [
        (["de-AT"], "", "de"),
        (["DE-at"], "", "de"),
        (["de_AT"], "", "de"),
        (["fr-x-private"], "", "fr"),
        (["ja-Jpan-JP-x-a"], "", "ja"),
        (["xx", "fr"], "", "fr"),
        (["xx"], "de;q=0.3, fr;q=0.8", "fr"),
        (["de"], "fr", "de"),
        ([], "pt-BR, *;q=0.5", ""),
        ([], "de;q=0, fr;q=0.1", "fr"),
        ([], "ja-JP,en;q=0.5", "ja"),
        ([], "not a header;;;", ""),
        ([], "de;q=nan", ""),
        (["d", "-", "", "--de", "../de", "de\x00"], "", ""),
    ],
)
def test_a_language_that_the_client_requests_has_precedence_over_the_languages_of_the_header(
    wished: list[str], header: str, found: str
) -> None:
    assert named(*wished, header=header) == found


def test_a_request_for_a_short_tag_never_selects_a_longer_tag() -> None:
    assert named("de", enabled=("de-AT",)) == ""


def test_only_the_first_requested_languages_are_read() -> None:
    def endless() -> Any:
        yield from ["xx"] * 20
        raise AssertionError("too many languages were read")

    assert named_language(ENABLED, wished=endless()) == ""


def test_a_language_tag_longer_than_any_registered_tag_is_ignored() -> None:
    assert named("de" + "-aaaaaaaa" * 3) == "de"
    assert named("de" + "-aaaaaaaa" * 4) == ""


def test_only_the_beginning_of_a_very_long_header_is_read() -> None:
    assert named(header="xx," * 200_000 + "de") == ""
    assert named(header="de," + "a" * 1_000_000) == "de"


# --- Precedence --------------------------------------------------------------------------------------------------------------


def user(**metadata: Any) -> Any:
    return SimpleNamespace(user_metadata=metadata)


@pytest.fixture
def enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages, "_read_enabled", lambda tenant_id: ("fr", "de", "xx"))


@pytest.mark.usefixtures("enabled")
def test_a_mail_uses_the_language_of_its_request_otherwise_of_its_user_otherwise_of_the_tenant() -> None:
    assert language_for(user(lang="de"), "t", asked="fr") == "fr"
    assert language_for(user(lang="de"), "t") == "de"
    assert language_for(user(locale="de-CH"), "t", asked="ja") == "de"
    assert language_for(user(lang=["de"], locale=5), "t") == "fr"
    assert language_for(SimpleNamespace(user_metadata="de"), "t") == "fr"  # type: ignore[arg-type]
    assert language_for(None, "t") == "fr"


@pytest.mark.usefixtures("enabled")
def test_a_language_without_a_catalog_is_never_enabled() -> None:
    assert languages.enabled_languages("t") == ("fr", "de")
    assert languages.spoken_language("t", wished=["xx"]) == "fr"


# --- Activation --------------------------------------------------------------------------------------------------------------


def test_a_language_applies_until_the_end_of_its_block_even_after_an_error() -> None:
    def answer() -> None:
        with speaking("de"):
            assert (get_language(), asked_language(), _("Log in")) == ("de", "de", "Anmelden")
            speak("fr")
            assert (get_language(), asked_language(), _("Log in")) == ("fr", "fr", "Se connecter")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        answer()
    assert (get_language(), asked_language()) == ("en", "")


def test_a_nested_block_restores_the_outer_language() -> None:
    with speaking("de"):
        with speaking("ja"):
            speak("ar")
        assert (get_language(), asked_language()) == ("de", "de")


def test_setting_the_language_outside_a_language_block_raises_an_error() -> None:
    with pytest.raises(RuntimeError):
        speak("de")
    with asked_in("de"), pytest.raises(RuntimeError):
        speak("de")
    assert get_language() == "en"


def test_the_mails_of_a_request_can_have_another_language_than_its_english_response() -> None:
    with asked_in("de"):
        assert (get_language(), asked_language()) == ("en", "de")
    assert asked_language() == ""


def test_the_language_of_one_thread_does_not_affect_another_thread() -> None:
    seen: list[tuple[str | None, str]] = []
    with speaking("de"):
        thread = threading.Thread(target=lambda: seen.append((get_language(), asked_language())))
        thread.start()
        thread.join()
    assert seen == [("en", "")]


@pytest.mark.parametrize("code", ["xx", "", "de-AT", "../../etc", "DE"])
def test_a_language_without_a_catalog_is_not_used(code: str) -> None:
    with pytest.raises(ValueError, match="no catalogue"), speaking(code):
        pass


def test_every_language_formats_times_in_its_own_words() -> None:
    moment = datetime(2026, 3, 4, 9, 5, tzinfo=UTC)
    written = {}
    for code in LANGUAGES:
        with speaking(code):
            written[code] = written_time(moment)
    assert written["en"] == "4 March 2026, 09:05"
    assert written["de"] == "4. März 2026, 09:05"
    assert written["fr"] == "4 mars 2026 à 09:05"
    assert written["es"] == "4 de marzo de 2026, 09:05"
    assert written["ja"] == "2026年3月4日 09:05"
    assert "مارس" in written["ar"]
    assert len(set(written.values())) == len(LANGUAGES)


def test_arabic_is_the_only_language_written_from_right_to_left() -> None:
    assert [code for code, language in LANGUAGES.items() if language.is_rtl] == ["ar"]
    assert {language.own_name for language in LANGUAGES.values()} == {"English", "Deutsch", "français", "español", "日本語", "العربيّة"}
