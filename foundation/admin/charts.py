"""Draws charts on the server: the SVG contains only bars, without text or style, so that the bars fit any width and any color theme.

The labels of the axes are text beside the SVG.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

WIDTH, HEIGHT = 240, 64
_GAP = 2
# Minimum height or length of a bar whose count is not zero, so that such a bar stays visible.
_LEAST = 1.5
# An axis ends at one of these numbers times a power of ten. Half of such an end, which the axis also shows, has few digits, too.
_ENDS = (1, 2, 4, 6, 8, 10)


@dataclass(frozen=True)
class Bar:
    """One bar. `url` links to the counted rows. If `text` is set, it is shown instead of the count."""

    label: str
    count: float
    url: str
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0
    tone: str = ""
    text: str = ""
    # For percentages: the height of the rest up to 100 percent, which is drawn above the bar.
    rest: float = 0

    @property
    def shown(self) -> str:
        return self.text or f"{self.count:,}"


@dataclass(frozen=True)
class Chart:
    """A chart, with a sentence (`summary`) for screen readers. `key` is the name of the chart in the page.

    If `is_upright`, the bars are columns of one drawing with two axes. Otherwise the chart is a table with a bar in each row.
    """

    key: str
    title: str
    url: str
    total: str
    summary: str
    bars: list[Bar]
    is_upright: bool
    empty: str
    tone: str = ""
    note: str = ""
    # The labels of the horizontal axis: its start, its middle, its end.
    first: str = ""
    middle: str = ""
    last: str = ""
    # The labels of the vertical axis: its unit, its end, and half of it.
    unit: str = ""
    top: str = ""
    half: str = ""
    # The heading of the column of values in the table. Default: the unit.
    column: str = ""
    width: int = field(default=WIDTH, init=False)
    height: int = field(default=HEIGHT, init=False)

    @property
    def is_empty(self) -> bool:
        return not any(bar.count or bar.rest for bar in self.bars)


def axis_end(most: float) -> float:
    """Return the end of an axis: the next round number at or above `most`."""
    if most <= 0:
        return 1
    scale: float = 10.0 ** math.floor(math.log10(most))
    # The tolerance absorbs the rounding error of a division such as 0.6 / 0.1.
    return round(scale * next(end for end in _ENDS if most / scale <= end + 1e-9), 9)


def count_axis(counts: Sequence[int]) -> int:
    """Return the end of an axis for counts. The end is an even number, because the axis also shows half of this number."""
    return int(axis_end(max(2, *counts, 0)))


def upright(counts: Sequence[int], label: Callable[[int], str], url: Callable[[int], str]) -> list[Bar]:
    """Return columns on an axis that ends at `count_axis`. `label` and `url` are called with the index of each column."""
    return _columns(counts, count_axis(counts), label, url, lambda count: f"{count:,}")


def measured(
    values: Sequence[float | None],
    end: float,
    label: Callable[[int], str],
    url: str,
    shown: Callable[[float], str],
    *,
    is_share: bool = False,
) -> list[Bar]:
    """Return columns of measurements on an axis that ends at `end`. A value of None draws no column.

    With `is_share`, the rest of each column up to `end` is drawn, too.
    """
    return _columns(values, end, label, lambda _number: url, shown, is_share=is_share)


def _columns(
    values: Sequence[float | None],
    end: float,
    label: Callable[[int], str],
    url: Callable[[int], str],
    shown: Callable[[float], str],
    *,
    is_share: bool = False,
) -> list[Bar]:
    step, found = WIDTH / max(len(values), 1), []
    for number, value in enumerate(values):
        height = max(value / end * (HEIGHT - 1), _LEAST) if value else 0
        x, y = round(number * step + _GAP / 2, 2), round(HEIGHT - height, 2)
        rest = round(HEIGHT - 1 - height, 2) if is_share and value is not None else 0
        text = "none" if value is None else shown(value)
        width = round(step - _GAP, 2)
        found.append(Bar(label(number), value or 0, url(number), x, y, width, round(height, 2), text=text, rest=max(rest, 0)))
    return found


def lying(rows: Sequence[tuple[str, int, str, str]]) -> list[Bar]:
    """Return one bar for each of `rows`. A row has a label, a count, a URL and a tone. The longest bar is as wide as the drawing."""
    most = max((count for _label, count, _url, _tone in rows), default=0) or 1
    return [
        Bar(label, count, url, width=round(max(count / most * WIDTH, _LEAST) if count else 0, 2), height=HEIGHT, tone=tone)
        for label, count, url, tone in rows
    ]
