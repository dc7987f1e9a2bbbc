"""Calculations on colors such as `#rrggbb`, and the contrast between them (WCAG 2.2). Pure."""

from __future__ import annotations

import re

# The formats that themes accept: 3 or 6 digits without an opacity, 4 or 8 digits with an opacity.
PATTERN = r"#(?:[0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})"
BLACK, WHITE = "#000000", "#ffffff"
# WCAG 2.2, success criteria 1.4.3 (level AA) and 1.4.11.
TEXT_CONTRAST = 4.5
PART_CONTRAST = 3.0
# The luminance at which black and white have equal contrast.
_MIDDLE = 0.179
_COLOR = re.compile(PATTERN)
# To correct a color, black or white is mixed into it. The right share is searched for by halving an interval. After this number of
# halvings, the share is exact to one part in 255.
_HALVINGS = 9


def is_color(value: str) -> bool:
    """Tell whether `value` is a color that is safe in a style sheet."""
    return _COLOR.fullmatch(value) is not None


def opaque(color: str, over: str = WHITE) -> str:
    """Return a color as `#rrggbb`. A translucent color is mixed with its background, the color `over`."""
    digits = color[1:].lower()
    if len(digits) in (3, 4):
        digits = "".join(digit * 2 for digit in digits)
    if len(digits) == 6:
        return f"#{digits}"
    return mixed(over, f"#{digits[:6]}", int(digits[6:], 16) / 255)


def mixed(one: str, other: str, share: float) -> str:
    """Return `one` mixed with a share, from 0 to 1, of `other`. Both are `#rrggbb`."""
    channels = [round(a + (b - a) * share) for a, b in zip(_channels(one), _channels(other), strict=True)]
    return "#" + "".join(f"{channel:02x}" for channel in channels)


def luminance(color: str) -> float:
    """Return the relative luminance of `#rrggbb` (WCAG 2.2)."""
    parts = [channel / 255 for channel in _channels(color)]
    red, green, blue = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def is_dark(color: str) -> bool:
    """Tell whether white text has more contrast on the color than black text."""
    return luminance(color) < _MIDDLE


def readable_on(color: str) -> str:
    """Return black or white, depending on which has more contrast on the color. The contrast is at least 4.58."""
    return WHITE if is_dark(color) else BLACK


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colors, from 1 to 21 (WCAG 2.2)."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def corrected(color: str, on: str, least: float = TEXT_CONTRAST) -> str:
    """Return `color` if its contrast on `on` is at least `least`, otherwise its nearest darker or lighter shade with this contrast."""
    if contrast(color, on) >= least:
        return color
    end = readable_on(on)
    too_little, enough = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (too_little + enough) / 2
        if contrast(mixed(color, end, middle), on) >= least:
            enough = middle
        else:
            too_little = middle
    return mixed(color, end, enough)


def _channels(color: str) -> list[int]:
    return [int(color[at : at + 2], 16) for at in (1, 3, 5)]
