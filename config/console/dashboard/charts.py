"""Charts as drawings of the server: bars in an SVG without any text or style of its own, so that they fit any width and colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

WIDTH, HEIGHT = 240, 64
_GAP = 2
# A count that is not nothing can be seen, however large the others are.
_LEAST = 1.5


@dataclass(frozen=True)
class Bar:
    """One bar; `url` leads to the rows that it counts."""

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
    """A chart with what it says in a sentence, for those who do not see it. `key` is its name in the page.

    `is_upright`: bars beside each other in one drawing. Otherwise a table with a bar in each row.
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
    """Return bars beside each other, the highest as high as the drawing; `label` and `url` are asked for each one's number."""
    most, step = max(counts, default=0) or 1, WIDTH / max(len(counts), 1)
    found = []
    for number, count in enumerate(counts):
        height = max(count / most * (HEIGHT - 1), _LEAST) if count else 0
        x, y = round(number * step + _GAP / 2, 2), round(HEIGHT - height, 2)
        found.append(Bar(label(number), count, url(number), x=x, y=y, width=round(step - _GAP, 2), height=round(height, 2)))
    return found


def lying(rows: Sequence[tuple[str, int, str, str]]) -> list[Bar]:
    """Return one bar for each label, count, address and tone, the longest as long as the drawing."""
    most = max((count for _label, count, _url, _tone in rows), default=0) or 1
    return [
        Bar(label, count, url, width=round(max(count / most * WIDTH, _LEAST) if count else 0, 2), height=HEIGHT, tone=tone)
        for label, count, url, tone in rows
    ]
