"""The check for plain English: the sentences that the check refuses, the texts that it reads, and the paths where it must find nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.plain_english.checking import CLEAN, ROOT, files_below, findings
from config.plain_english.rules import EXCEPTIONS, RULES
from config.plain_english.texts import texts_of

# One refused text for each rule, in the order of the rules.
REFUSED = (
    "Whoever asks waits.",
    "It ends, whatever happens.",
    "Who asks on waits.",
    "test who leaves takes the answer from no other",
    "Of the request nothing is kept.",
    "Refuses what is no address.",
    "The code stands in the address.",
    "Redis is\naway.",
    "It goes round the guard.",
    "The stream goes on.",
    "The caller hears of the end.",
    "A session that was proven of late.",
    "Look into your mail",
    "A neighbour.",
)
ALLOWED = """Recovery codes stand in for the factor. A request for /who is a question of the client. The stream continues.
A worker reads on its connection. Returns the color of a theme. The account `nobody` owns the file."""


def found_in(tmp_path: Path, name: str, source: str) -> list[str]:
    (tmp_path / name).write_text(source)
    return [line.partition(": ")[0] for line in findings(tmp_path, (name,))]


def test_each_rule_refuses_its_example() -> None:
    assert len(REFUSED) == len(RULES)
    for rule, text in zip(RULES, REFUSED, strict=True):
        assert rule.pattern.search(text), text


def test_ordinary_sentences_pass() -> None:
    texts = [text.content for text in texts_of("page.md", ALLOWED)]
    assert [rule.advice for rule in RULES for text in texts if rule.pattern.search(text)] == []


def test_only_comments_docstrings_and_test_names_of_code_are_checked(tmp_path: Path) -> None:
    source = (
        '"""A module.\n\nWhoever reads it."""\n'
        'nobody = "whoever"\n'
        "value = 1  # For nobody.\n"
        "# A server that is\n# away.\n"
        "def test_who_leaves_loses() -> None:\n"
        '    """Somebody left `nobody`."""\n'
    )
    assert found_in(tmp_path, "module.py", source) == ["module.py:5", "module.py:6", "module.py:3", "module.py:8", "module.py:9"]


def test_prose_of_pages_is_checked_without_code_and_markup(tmp_path: Path) -> None:
    page = "# Users\n\n```sh\nsudo -u nobody\n```\n\nRun `nobody`.\nFor nobody.\n"
    assert found_in(tmp_path, "page.md", page) == ["page.md:8"]
    template = '<p class="nobody">{{ nobody }}</p>\n<p>{% translate "For nobody." %}</p>\n{# For somebody. #}\n'
    assert found_in(tmp_path, "page.html", template) == ["page.html:2", "page.html:3"]


def test_an_exception_applies_only_to_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXCEPTIONS, ("quoting.md", "nobody"), "A quotation.")
    assert found_in(tmp_path, "quoting.md", "For nobody.\nFor somebody.\n") == ["quoting.md:2"]
    assert found_in(tmp_path, "other.md", "For nobody.\n") == ["other.md:1"]


def test_a_listed_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="lists gone"):
        list(findings(tmp_path, ("gone",)))


def test_the_clean_paths_have_no_findings_and_every_exception_is_used() -> None:
    assert list(findings(ROOT, CLEAN)) == []
    for path, phrase in EXCEPTIONS:
        assert path in set(files_below(ROOT, CLEAN)), path
        assert phrase in " ".join(" ".join(text.content for text in texts_of(path, (ROOT / path).read_text())).split()), phrase
