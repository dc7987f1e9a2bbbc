from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioning.expressions import MAX_CHARACTERS, ExpressionRefused, compile_expression

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("email", "a@example.test"),
        (" email ", "a@example.test"),
        ("user_metadata.phone", "+47"),
        ("user_metadata.missing.deeper", None),
        ("email.length", None),
        ('app_metadata."odd name"', 7),
        ("'fixed text'", "fixed text"),
        ("''", ""),
        ("!blocked", False),
        ("!missing", True),
        ("!email", True),
    ],
)
def test_an_expression_yields_a_value_of_the_document(expression: str, value: Any) -> None:
    document = {"email": "a@example.test", "user_metadata": {"phone": "+47"}, "app_metadata": {"odd name": 7}, "blocked": True}
    assert compile_expression(expression)(document) == value


@pytest.mark.parametrize(
    "expression",
    ["", "  ", ".", "a.", ".a", "a..b", "a b", "a[0]", "a || b", "!", "!!a", "'open", '"open', "a'b'", "1a", "a.*", "é", "a" * 600],
)
def test_what_the_grammar_does_not_know_is_refused(expression: str) -> None:
    with pytest.raises(ExpressionRefused):
        compile_expression(expression)


@given(names=st.lists(NAMES, min_size=1, max_size=6), value=st.text())
def test_any_path_of_names_finds_what_stands_there(names: list[str], value: str) -> None:
    document: Any = value
    for name in reversed(names):
        document = {name: document}
    assert compile_expression(".".join(names))(document) == value
    assert compile_expression("!" + ".".join(names))(document) is True


@given(st.text(max_size=MAX_CHARACTERS + 5))
def test_any_text_is_either_compiled_or_refused(text: str) -> None:
    try:
        compiled = compile_expression(text)
    except ExpressionRefused:
        return
    assert compiled({}) in (None, True) or text.strip() == f"'{compiled({})}'"
