"""Bar charts as SVG, readable on light and dark backgrounds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH = 760
_LABELS = 190
_VALUES = 90
_BAR, _GAP = 16, 6
_TITLE, _SPACE = 28, 22
# Text and background follow the reader's color scheme; the bars have enough contrast in both schemes.
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 } .note { fill: #59636e }
.other { fill: #8c959f } .own { fill: #2f81f7 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .note { fill: #9198a1 } }
"""


@dataclass(frozen=True)
class Panel:
    """One measured value of each server; servers without this value are left out."""

    title: str
    note: str
    bars: Sequence[tuple[str, float]]


def drawn(panels: Sequence[Panel]) -> str:
    """Return the panels one below the other as an SVG document."""
    parts: list[str] = []
    top = 4
    for panel in panels:
        parts += _panel(panel, top)
        top += _TITLE + len(panel.bars) * (_BAR + _GAP) + _SPACE
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}" role="img">'
    return "\n".join([head, "<title>The event stream compared with other servers</title>", f"<style>{_STYLE}</style>", *parts, "</svg>\n"])


def _panel(panel: Panel, top: int) -> list[str]:
    longest = max(max(value for _, value in panel.bars), 1e-9)
    title = f'<text class="title" x="0" y="{top + 14}">{escape(panel.title)} <tspan class="note">{escape(panel.note)}</tspan></text>'
    parts = [title]
    for number, (label, value) in enumerate(panel.bars):
        y = top + _TITLE + number * (_BAR + _GAP)
        length = max(value / longest * (_WIDTH - _LABELS - _VALUES), 1.0)
        kind = "own" if label.startswith("ours") else "other"
        parts.append(f'<text x="{_LABELS - 8}" y="{y + 13}" text-anchor="end">{escape(label)}</text>')
        parts.append(f'<rect class="{kind}" x="{_LABELS}" y="{y}" width="{length:.1f}" height="{_BAR}" rx="2"/>')
        parts.append(f'<text x="{_LABELS + length + 6:.1f}" y="{y + 13}">{_shown(value)}</text>')
    return parts


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
