"""Line charts as SVG: relative costs at growing sizes, on a logarithmic axis of sizes. Readable on light and dark backgrounds. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 760, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 230, 30, 26
_LINE = 16
# The axis of the costs reaches at least this multiple, so that noise of some percent does not look like growth.
_LEAST_TOP = 2.0
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 } .note { fill: #59636e }
.grid { stroke: #d1d9e0; stroke-width: 1 } .curve { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .note { fill: #9198a1 } .grid { stroke: #3d444d } }
"""


@dataclass(frozen=True)
class Curve:
    """One cost at each size, as a multiple of the cost at the smallest size."""

    label: str
    color: str
    values: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """The curves of one dimension."""

    title: str
    sizes: Sequence[int]
    curves: Sequence[Curve]


def drawn(panels: Sequence[Panel]) -> str:
    """Return the panels one below the other as an SVG document."""
    height = _HEIGHT * len(panels)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img">'
    body = [line for number, panel in enumerate(panels) for line in _panel(panel, number * _HEIGHT)]
    return "\n".join(
        [head, "<title>Costs at growing sizes, relative to the smallest size</title>", f"<style>{_STYLE}</style>", *body, "</svg>\n"]
    )


def _panel(panel: Panel, top: int) -> list[str]:
    most = max([_LEAST_TOP, *(value for curve in panel.curves for value in curve.values)])
    right, bottom = _WIDTH - _RIGHT, top + _HEIGHT - _BOTTOM
    low, high = math.log10(panel.sizes[0]), math.log10(panel.sizes[-1])

    def x(size: float) -> float:
        return _LEFT + (math.log10(size) - low) / ((high - low) or 1.0) * (right - _LEFT)

    def y(value: float) -> float:
        return bottom - value / most * (bottom - top - _TOP)

    parts = [f'<text class="title" x="0" y="{top + 16}">Cost by {escape(panel.title)} <tspan class="note">smallest size = 1</tspan></text>']
    for value in _steps(most):
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{y(value):.1f}" x2="{right}" y2="{y(value):.1f}"/>')
        parts.append(f'<text class="note" x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    parts += [f'<text class="note" x="{x(size):.1f}" y="{bottom + 17}" text-anchor="middle">{size:,}</text>' for size in panel.sizes]
    for number, curve in enumerate(panel.curves):
        points = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in zip(panel.sizes, curve.values, strict=True))
        parts.append(f'<polyline class="curve" points="{points}" stroke="{curve.color}"/>')
        place = top + _TOP + 8 + number * _LINE
        parts.append(f'<line class="curve" x1="{right + 16}" y1="{place - 4}" x2="{right + 36}" y2="{place - 4}" stroke="{curve.color}"/>')
        parts.append(f'<text x="{right + 44}" y="{place}">{escape(curve.label)} {curve.values[-1]:.2f}</text>')
    return parts


def _steps(most: float) -> list[float]:
    """Return the values of at most five horizontal lines, from zero on."""
    step = next(step for power in range(6) for step in (0.5 * 10**power, 10.0**power, 2 * 10.0**power) if most / step <= 4.5)
    return [step * number for number in range(int(most / step) + 1)]
