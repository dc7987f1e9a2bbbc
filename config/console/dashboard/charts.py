"""Charts that the server draws: SVG bars without text and style, so that they fit any width and color theme."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

WIDTH, HEIGHT = 240, 64
_GAP = 2
# Minimum height or length of a bar whose count is not zero, so that it stays visible.
_LEAST = 1.5


@dataclass(frozen=True)
class Bar:
    """One bar. `url` links to the rows that it counts."""

    label: str
    count: int
    url: str
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0
    tone: str = ""

    @property
    def shown(self) -> str:
        return f"{self.count:,}"


@dataclass(frozen=True)
class Chart:
    """A chart with its summary in a sentence for screen readers. `key` is its name in the page.

    `is_upright`: the bars are columns of one drawing. Otherwise the chart is a table with a bar in each row.
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
    first: str = ""
    last: str = ""
    width: int = field(default=WIDTH, init=False)
    height: int = field(default=HEIGHT, init=False)

    @property
    def is_empty(self) -> bool:
        return not any(bar.count for bar in self.bars)

    @property
    def most(self) -> str:
        return f"{max((bar.count for bar in self.bars), default=0):,}"


def upright(counts: Sequence[int], label: Callable[[int], str], url: Callable[[int], str]) -> list[Bar]:
    """Return columns; the highest is as high as the drawing. `label` and `url` are called with the number of each column."""
    most, step = max(counts, default=0) or 1, WIDTH / max(len(counts), 1)
    found = []
    for number, count in enumerate(counts):
        height = max(count / most * (HEIGHT - 1), _LEAST) if count else 0
        x, y = round(number * step + _GAP / 2, 2), round(HEIGHT - height, 2)
        found.append(Bar(label(number), count, url(number), x=x, y=y, width=round(step - _GAP, 2), height=round(height, 2)))
    return found


def lying(rows: Sequence[tuple[str, int, str, str]]) -> list[Bar]:
    """Return one bar for each label, count, address and tone. The longest is as wide as the drawing."""
    most = max((count for _label, count, _url, _tone in rows), default=0) or 1
    return [
        Bar(label, count, url, width=round(max(count / most * WIDTH, _LEAST) if count else 0, 2), height=HEIGHT, tone=tone)
        for label, count, url, tone in rows
    ]
