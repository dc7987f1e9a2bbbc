"""Colors: whether a text color is readable on its background, and how the service corrects unreadable colors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from authapi.looks.colors import contrast, corrected, is_color, is_dark, mixed, opaque, readable_on
from authapi.looks.contrast import PAIRS, findings, readable_colors
from authapi.looks.theme import default_theme, value_at, with_value

COLORS = st.tuples(*[st.integers(0, 255)] * 3).map(lambda channels: "#" + "".join(f"{channel:02x}" for channel in channels))


@pytest.mark.parametrize(("one", "other", "ratio"), [("#000000", "#ffffff", 21), ("#777777", "#ffffff", 4.48), ("#ff0000", "#ffffff", 4)])
def test_contrast_follows_the_standard(one: str, other: str, ratio: float) -> None:
    assert contrast(one, other) == pytest.approx(ratio, abs=0.01)
    assert contrast(other, one) == contrast(one, other)


@given(COLORS)
def test_black_or_white_is_readable_on_any_color(color: str) -> None:
    assert contrast(readable_on(color), color) >= 4.5


@given(COLORS, COLORS, st.sampled_from([3.0, 4.5]))
def test_a_corrected_color_is_readable_and_a_readable_color_is_unchanged(color: str, surface: str, least: float) -> None:
    shown = corrected(color, surface, least)
    assert contrast(shown, surface) >= least
    assert contrast(color, surface) < least or shown == color


@pytest.mark.parametrize(
    ("color", "shown"),
    [("#ABC", "#aabbcc"), ("#abcd", "#b5c4d3"), ("#A1B2C3", "#a1b2c3"), ("#00000080", "#7f7f7f"), ("#ffffff00", "#ffffff")],
)
def test_a_translucent_color_is_shown_as_it_appears_over_white(color: str, shown: str) -> None:
    assert opaque(color) == shown


@pytest.mark.parametrize("text", ["", "red", "#12345", "#1234567", "#ffffff;", "#ffffff\n", "#fff}", "url(x)", "#gggggg", "rgb(0,0,0)"])
def test_a_text_other_than_a_hexadecimal_color_is_refused_as_a_color(text: str) -> None:
    assert not is_color(text)


def test_the_default_branding_is_readable() -> None:
    assert findings(default_theme()) == []


def test_unreadable_text_is_refused_and_faint_text_is_corrected() -> None:
    on_white = with_value(default_theme(), ("colors", "body_text"), "#eeeeee")
    (found,) = findings(on_white)
    assert found.is_refused
    problem = "#eeeeee on #ffffff has a contrast of 1.1:1 and cannot be read."
    assert found.sentence.startswith(f"{problem} At least 4.5:1 is needed, for example #")
    faint = with_value(default_theme(), ("colors", "body_text"), "#888888")
    (found,) = findings(faint)
    assert not found.is_refused
    assert found.sentence == f"#888888 on #ffffff has a contrast of 3.5:1; 4.5:1 is needed. The pages show {found.shown} instead."
    assert contrast(found.shown, "#ffffff") >= 4.5


def test_borders_are_corrected_and_never_refused() -> None:
    (found,) = findings(with_value(default_theme(), ("colors", "input_border"), "#fefefe"))
    assert not found.is_refused
    assert contrast(found.shown, "#ffffff") >= 3


@given(st.lists(COLORS, min_size=16, max_size=16))
def test_the_pages_show_readable_colors_for_every_theme(colors: list[str]) -> None:
    theme = default_theme()
    for name, color in zip(list(theme["colors"]), colors, strict=False):
        theme = with_value(theme, ("colors", name), color)
    shown = readable_colors(theme)
    for pair in PAIRS:
        assert contrast(shown[pair.color], opaque(value_at(theme, pair.surface))) >= pair.least


def test_mixing_two_colors_starts_at_the_first_color_and_ends_at_the_second() -> None:
    assert (mixed("#000000", "#ffffff", 0), mixed("#000000", "#ffffff", 1), mixed("#000000", "#ff8000", 0.5)) == (
        "#000000",
        "#ffffff",
        "#804000",
    )
    assert is_dark("#333333")
    assert not is_dark("#cccccc")
