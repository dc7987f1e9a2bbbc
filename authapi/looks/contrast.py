"""Lists the colors of a theme with the surfaces below them, and checks whether the contrast is enough (WCAG 2.2, level AA). Pure.

A theme is refused if a text has a contrast below 3:1, because this is probably a mistake. The pages replace any other color with too little
contrast by the nearest readable shade.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from authapi.looks.colors import PART_CONTRAST, TEXT_CONTRAST, WHITE, contrast, corrected, opaque
from authapi.looks.theme import color_at

REFUSED_BELOW = 3.0
Path = tuple[str, ...]
_WIDGET: Path = ("colors", "widget_background")


@dataclass(frozen=True)
class Pair:
    """A color and the surface below it.

    A graphical part, such as a border, needs less contrast than text, and its color is never refused.
    """

    color: Path
    surface: Path
    is_text: bool = True

    @property
    def least(self) -> float:
        return TEXT_CONTRAST if self.is_text else PART_CONTRAST


PAIRS = (
    Pair(("colors", "primary_button_label"), ("colors", "primary_button")),
    Pair(("colors", "body_text"), _WIDGET),
    Pair(("colors", "header"), _WIDGET),
    Pair(("colors", "links_focused_components"), _WIDGET),
    Pair(("colors", "input_labels_placeholders"), _WIDGET),
    Pair(("colors", "secondary_button_label"), _WIDGET),
    Pair(("colors", "error"), _WIDGET),
    Pair(("colors", "success"), _WIDGET),
    Pair(("colors", "input_filled_text"), ("colors", "input_background")),
    Pair(("colors", "input_border"), _WIDGET, is_text=False),
    Pair(("colors", "icons"), _WIDGET, is_text=False),
)


@dataclass(frozen=True)
class Finding:
    """A color with too little contrast on its surface, and the color that the pages show instead."""

    path: Path
    color: str
    surface: str
    ratio: float
    shown: str
    least: float

    @property
    def is_refused(self) -> bool:
        """Whether the theme is refused because of this color."""
        return self.least == TEXT_CONTRAST and self.ratio < REFUSED_BELOW

    @property
    def sentence(self) -> str:
        """The finding in words, with the correction."""
        # The ratio is rounded down, so that 2.99:1 is not shown as 3:1.
        found = f"{self.color} on {self.surface} has a contrast of {int(self.ratio * 10) / 10}:1"
        if self.is_refused:
            return f"{found} and cannot be read. At least {self.least}:1 is needed, for example {self.shown}."
        return f"{found}; {self.least:g}:1 is needed. The pages show {self.shown} instead."


def findings(theme: Mapping[str, Any]) -> list[Finding]:
    """Return the colors of a theme that are refused or corrected."""
    found = []
    for pair in PAIRS:
        surface = _opaque(theme, pair.surface)
        color = opaque(color_at(theme, pair.color), surface)
        ratio = contrast(color, surface)
        if ratio < pair.least:
            shown = corrected(color, surface, pair.least)
            found.append(Finding(pair.color, color, surface, ratio, shown, pair.least))
    return found


def readable_colors(theme: Mapping[str, Any]) -> dict[Path, str]:
    """Return the colors of all pairs as the pages show them."""
    shown = {}
    for pair in PAIRS:
        surface = _opaque(theme, pair.surface)
        shown[pair.color] = corrected(opaque(color_at(theme, pair.color), surface), surface, pair.least)
    return shown


def _opaque(theme: Mapping[str, Any], path: Path) -> str:
    """Return the color of a surface, mixed with the color below it. A field lies on the box, and every other surface lies on white."""
    below = WHITE if path == _WIDGET or path[-1] == "primary_button" else _opaque(theme, _WIDGET)
    return opaque(color_at(theme, path), below)
