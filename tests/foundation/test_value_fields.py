"""The form field for a map of JSON values: a form that is sent back unchanged keeps every value, and invalid rows get a message."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django import forms

from foundation.admin.value_fields import ValuesField

_INPUT = re.compile(r'<input type="text"[^>]* name="([^"]+)" value="([^"]*)"')
_TEXTAREA = re.compile(r'<textarea name="([^"]+)"[^>]*>\n?([^<]*)</textarea>')


class _Form(forms.Form):
    kept = ValuesField()


def posted(page: str) -> dict[str, str]:
    """Return the fields that a browser sends for the inputs of a page, by their names."""
    return {name: unescape(text).replace("\n", "\r\n") for name, text in (*_INPUT.findall(page), *_TEXTAREA.findall(page))}


def rows(*pairs: tuple[str, str]) -> _Form:
    data: dict[str, str] = {}
    for number, (name, value) in enumerate(pairs):
        data |= {f"kept-name-{number}": name, f"kept-value-{number}": value}
    return _Form(data, initial={"kept": {}})


def test_a_value_without_a_name_is_refused() -> None:
    assert rows(("", "gold")).errors == {"kept": ["Enter a name for the value “gold”."]}


def test_two_equal_names_are_refused() -> None:
    assert rows(("plan", "gold"), ("plan", "free")).errors == {"kept": ["The name “plan” appears twice."]}


@pytest.mark.parametrize("text", ["{", "[1,", '"open', "{" * 100_000, "[" * 100_000, "9" * 5_000])
def test_a_value_that_begins_like_json_and_cannot_be_read_is_refused(text: str) -> None:
    message = "The value of “plan” cannot be read as JSON. If the value is text, put it in quotes."
    assert rows(("plan", text)).errors == {"kept": [message]}


def test_errors_and_labels_use_the_heading_of_the_first_column() -> None:
    field = ValuesField(head="Claim")
    page = type("_Claims", (forms.Form,), {"kept": field})(initial={"kept": {"sub": "1"}}).as_p()
    assert "<span>Claim</span><span>Value</span>" in page
    assert 'aria-label="Claim 1"' in page
    with pytest.raises(forms.ValidationError, match="Enter a claim for the value “gold”"):
        field.clean(field.widget.value_from_datadict({"kept-name-0": "", "kept-value-0": "gold"}, {}, "kept"))


def test_rows_with_an_error_are_shown_as_they_were_entered() -> None:
    assert posted(rows(("plan", "{")).as_p()).items() >= {"kept-name-0": "plan", "kept-value-0": "{"}.items()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("gold", "gold"),
        ("", ""),
        ("7", 7),
        ('"7"', "7"),
        ("007", "007"),
        ("-1.5e3", -1500.0),
        ("true", True),
        ("True", "True"),
        ('{"a": [1]}', {"a": [1]}),
        (" [] ", []),
    ],
)
def test_a_text_is_stored_as_a_json_value_if_it_is_valid_json(text: str, value: Any) -> None:
    form = rows(("plan", text), ("", ""))
    assert form.is_valid()
    assert form.cleaned_data["kept"] == {"plan": value}
    assert type(form.cleaned_data["kept"]["plan"]) is type(value)


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"plan": "gold", "seats": 3, "share": 0.5, "is_new": True, "end": None},
        {"address": {"city": "Zürich", "lines": ["a", "b"]}, "tags": [], "more": {}},
        {"number": "7", "flag": "true", "brace": "{", "quoted": '"', "spaced": " a ", "text": "two\nlines", "markup": "<b>&amp;"},
        {f"name-{number}": number for number in range(201)},
        {"": "a name that no row has", " \t": 1},
    ],
    ids=["empty", "plain", "nested", "odd texts", "more than rows", "odd names"],
)
def test_a_form_that_is_sent_back_unchanged_changes_no_value(stored: dict[str, Any]) -> None:
    form = _Form(posted(_Form(initial={"kept": stored}).as_p()), initial={"kept": stored})
    assert form.is_valid(), form.errors
    assert form.cleaned_data["kept"] == stored
    assert not form.has_changed()


def test_an_emptied_row_removes_its_value() -> None:
    sent = posted(_Form(initial={"kept": {"plan": "gold", "seats": 3}}).as_p()) | {"kept-name-0": "", "kept-value-0": ""}
    form = _Form(sent, initial={"kept": {"plan": "gold", "seats": 3}})
    assert form.is_valid()
    assert form.cleaned_data["kept"] == {"seats": 3}
    assert form.has_changed()


def test_a_json_object_is_accepted_as_the_value_of_the_field_instead_of_rows() -> None:
    form = _Form({"kept": '{"plan": "gold"}'})
    assert form.is_valid()
    assert form.cleaned_data["kept"] == {"plan": "gold"}


@pytest.mark.parametrize("text", ["[1]", "7", "{"])
def test_a_text_in_place_of_rows_that_is_no_json_object_is_refused(text: str) -> None:
    form = _Form({"kept": text})
    assert not form.is_valid()
    assert text in "".join(form.as_p().split())
