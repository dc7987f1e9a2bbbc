"""Turns the figures of a run into the tables and the plot of the documentation; the surrounding text is written by hand."""

from __future__ import annotations

from typing import Any

from benchmarks.scale.plot import Curve, Panel, drawn
from config.launcher.options import ROOT

PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "images" / "growth.svg"
_BEGIN, _END = "<!-- figures of make bench-scale: begin -->", "<!-- figures of make bench-scale: end -->"
# The name of a figure, its label in tables, its unit, and its digits after the point.
_COLUMNS = (
    ("event", "change of a user, committed", "ms", 1),
    ("event, PostgreSQL", "of that in PostgreSQL", "ms", 2),
    ("commit to stream", "commit to last stream", "ms", 1),
    ("frame", "frame", "µs", 1),
    ("replay", "replayed event", "µs", 1),
    ("delivery", "delivery", "ms", 1),
    ("token", "token", "ms", 2),
    ("tokens per second", "tokens", "1/s", 0),
    ("page: start page", "start page", "ms", 0),
    ("page: event log", "page of the event log", "ms", 0),
    ("page: users", "page of users", "ms", 0),
    ("periodic work", "periodic work", "ms", 0),
)
# The curves of the plot: the name of a figure, its label, and its color in every panel.
_PLOTTED = (
    ("event", "change of a user", "#2f81f7"),
    ("frame", "frame", "#d29922"),
    ("replay", "replayed event", "#8c959f"),
    ("delivery", "delivery", "#3fb950"),
    ("token", "token", "#f85149"),
    ("page: event log", "page of the event log", "#a371f7"),
)

Figures = dict[str, Any]


def write_document(figures: Figures) -> None:
    """Replace the figures in the page, and the plot."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    assert end, f"{PAGE} has no place for these figures"
    PAGE.write_text(f"{before}{_BEGIN}\n{shown(figures)}{_END}{after}")
    PICTURE.write_text(drawn(_panels(figures)))


def shown(figures: Figures) -> str:
    """Return one table per dimension as Markdown, with the growth from the smallest to the largest size in the last row."""
    loads = [result["load"] for result in figures["results"]]
    parts = [f"{figures['cores']} cores. Load average during the run: {min(loads):.1f} to {max(loads):.1f}.\n"]
    parts += [_table(dimension, results) for dimension, results in _by_dimension(figures).items()]
    return "\n".join(parts)


def _by_dimension(figures: Figures) -> dict[str, list[Figures]]:
    grouped: dict[str, list[Figures]] = {}
    for result in figures["results"]:
        grouped.setdefault(result["dimension"], []).append(result)
    return grouped


def _table(dimension: str, results: list[Figures]) -> str:
    columns = [column for column in _COLUMNS if column[0] in results[0]]
    head = [dimension.capitalize(), *(f"{label}, {unit}" for _, label, unit, _ in columns)]
    rows = [[f"{result['size']:,}", *(f"{result[name]:,.{digits}f}" for name, _, _, digits in columns)] for result in results]
    rows.append(["largest / smallest", *(f"{results[-1][name] / results[0][name]:.2f}" for name, *_ in columns)])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, ["---"] * len(head), *rows])


def _panels(figures: Figures) -> list[Panel]:
    panels = []
    for dimension, results in _by_dimension(figures).items():
        sizes = [result["size"] for result in results]
        first = results[0]
        curves = [Curve(label, color, [r[name] / first[name] for r in results]) for name, label, color in _PLOTTED if name in first]
        panels.append(Panel(dimension, sizes, curves))
    return panels
