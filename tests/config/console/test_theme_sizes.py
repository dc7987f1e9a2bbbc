"""In the style sheets of the admin, each size of text and each distance is a step of its scale."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

from config.console.components import DISTANCES

THEME = Path(settings.BASE_DIR) / "static" / "theme"
# Style sheets of pages outside the admin: pages of end users, errors, and the API browser.
OTHERS = {"hosted.css", "errors.css", "api_browser.css"}
SHEETS = sorted(path.name for path in THEME.glob("*.css") if path.name not in OTHERS)
STEPS = {0, *DISTANCES}
_SIZE = re.compile(r"font-size: ([^;}]+)")
_DISTANCE = re.compile(r"(?<![\w-])(?:padding|margin|gap|row-gap|column-gap)(?:-[a-z-]+)?: ([^;}]+)")
# Distances that are no steps of the scale: the padding of badges, the navigation that Django moves out of the page, and the room for the
# button that copies a line.
_EXCEPTIONS = {("admin.css", 1), ("dashboard.css", 1), ("admin.css", 233), ("setup.css", 44)}


def scale() -> set[str]:
    return set(re.findall(r"(--text-[a-z]+):", (THEME / "admin.css").read_text()))


@pytest.mark.parametrize("sheet", SHEETS)
def test_every_size_of_text_is_a_step_of_the_scale(sheet: str) -> None:
    used = {size.strip() for size in _SIZE.findall((THEME / sheet).read_text())}
    assert used <= {f"var({name})" for name in scale()}


def test_the_scale_of_text_has_few_steps_and_all_are_used() -> None:
    content = "".join((THEME / sheet).read_text() for sheet in SHEETS)
    assert len(scale()) == 8
    assert all(f"var({name})" in content for name in scale())


@pytest.mark.parametrize("sheet", SHEETS)
def test_every_distance_is_a_step_of_the_scale(sheet: str) -> None:
    found = _DISTANCE.findall((THEME / sheet).read_text())
    pixels = {int(number) for value in found if "calc" not in value for number in re.findall(r"(\d+)px", value)}
    assert {number for number in pixels - STEPS if (sheet, number) not in _EXCEPTIONS} == set()


def test_the_description_of_the_scale_in_the_style_sheet_is_complete() -> None:
    described = re.search(r"gaps are ([\d, or]+) pixels", (THEME / "admin.css").read_text())
    assert described
    assert {int(number) for number in re.findall(r"\d+", described[1])} == STEPS - {0}
