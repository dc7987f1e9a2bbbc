"""An event type at the start of a text on a page wraps after its dots. The other texts do not change."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.utils.html import strip_tags
from django.utils.safestring import mark_safe

from events.admin.event_names import wrapping
from events.record.catalogue import EVENT_TYPES

SCRIPTS = settings.BASE_DIR / "static"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("user.created", "user.<wbr>created"),
        ("organization.connection.removed for Ada", "organization.<wbr>connection.<wbr>removed for Ada"),
        ("group.role.assigned, user.deleted", "group.<wbr>role.<wbr>assigned, user.deleted"),
    ],
)
def test_an_event_type_wraps_after_its_dots(text: str, shown: str) -> None:
    assert wrapping(text) == shown


def test_every_event_type_wraps_and_keeps_its_text() -> None:
    shown = {name: wrapping(name) for name in EVENT_TYPES}
    assert {name: strip_tags(text) for name, text in shown.items()} == {name: name for name in EVENT_TYPES}
    assert all(text.count("<wbr>") == name.count(".") for name, text in shown.items())


@pytest.mark.parametrize("text", ["", "Ada", "ada@example.test", "Block user.created", "manage.py events", "user.created.test", "user_id"])
def test_other_texts_do_not_change(text: str) -> None:
    assert wrapping(text) == text


def test_a_type_at_the_start_of_an_element_wraps_and_attributes_do_not_change() -> None:
    cell = mark_safe('<td class="a.b"><a href="/?type=user.created" title="user.created">user.created</a></td>')
    assert wrapping(cell) == '<td class="a.b"><a href="/?type=user.created" title="user.created">user.<wbr>created</a></td>'


def test_markup_in_a_text_is_escaped() -> None:
    assert wrapping("<b>user.created</b>") == "&lt;b&gt;user.created&lt;/b&gt;"
    assert wrapping("user.created <i>") == "user.<wbr>created &lt;i&gt;"


def test_no_script_has_a_pattern_that_is_a_syntax_error_in_older_browsers() -> None:
    # Safari before version 16.4 has no lookbehind, and would not run the script at all.
    scripts = sorted(SCRIPTS.rglob("*.js"))
    assert scripts
    assert [script.name for script in scripts if re.search(r"\(\?<[=!]", script.read_text())] == []
