"""The blocks that a tutorial can contain, and the comparison of the output on the page with the real output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tutorials import PAGES, NotATutorial, pattern_of, steps_of


def test_all_listed_tutorials_exist() -> None:
    assert {page.stem for page in PAGES} == {"consume-events", "first-stream", "log-a-user-in", "provision-to-scim"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_tutorial_is_run_or_compared_or_saved(page: Path) -> None:
    steps = steps_of(page.read_text())

    assert sum(step.kind == "run" for step in steps) > 2
    assert [step.content for step in steps if step.kind == "not run"] in ([], ["make up\n"])


def test_comments_above_a_block_apply_only_to_that_block() -> None:
    first, second = steps_of("<!-- terminal: other -->\n<!-- runs on -->\n```sh\nsleep 1\n```\n\n```sh\ntrue\n```\n")

    assert (first.terminal, "runs on" in first.marks) == ("other", True)
    assert (second.terminal, second.marks) == ("first", {})


def test_a_section_ends_at_the_next_heading() -> None:
    page = "## One\n\n```sh\n1\n```\n\n### In it\n\n```sh\n2\n```\n\n## Two\n\n```sh\n3\n```\n"

    assert [step.content for step in steps_of(page, section="One")] == ["1\n", "2\n"]


@pytest.mark.parametrize(
    "page",
    [
        "```json\n{}\n```\n",
        "```\nplain\n```\n",
        "<!-- not run -->\n```sh\ntrue\n```\n",
        "<!-- trminal: second -->\n```sh\ntrue\n```\n",
        "<!-- terminal: second -->\nNo block follows.\n",
    ],
)
def test_a_block_that_cannot_run_is_refused(page: str) -> None:
    with pytest.raises(NotATutorial):
        steps_of(page)


def test_a_missing_heading_is_refused() -> None:
    with pytest.raises(NotATutorial):
        steps_of("## One\n", section="Two")


def test_dots_in_a_line_match_any_text_within_the_line() -> None:
    assert pattern_of("id: ...\nlast\n").search("before\nid: abc\nlast\n")
    assert not pattern_of("id: ...\nlast\n").search("id: abc\nbetween\nlast\n")


def test_a_line_of_dots_matches_any_number_of_lines() -> None:
    shown = pattern_of("first\n...\nlast\n")

    assert shown.search("first\none\ntwo\nlast\n")
    assert shown.search("first\nlast\n")


def test_a_line_is_compared_as_a_whole() -> None:
    assert not pattern_of("created\n").search("created twice\n")
    assert not pattern_of("created\n").search("not created\n")
    assert not pattern_of("1.5\n").search("135\n")
