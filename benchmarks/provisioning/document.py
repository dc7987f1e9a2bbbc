"""Turns the figures of a run into the table of the documentation; the surrounding text is written by hand."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from config.launcher.options import ROOT

PAGE = ROOT / "docs" / "performance.md"
_MARK = "<!-- figures of make bench-provisioning{}: {} -->"
_LISTS = ", lists"

Figures = dict[str, Any]
Row = tuple[str, str, str]


def write_document(results: Figures) -> None:
    """Replace the two blocks of figures in the page: deliveries, and lists of the admin."""
    text = _replaced(PAGE.read_text(), "", _deliveries(results))
    PAGE.write_text(_replaced(text, _LISTS, _machine(results) + lists_table(results["lists"])))


def _replaced(text: str, block: str, figures: str) -> str:
    before, begin, rest = text.partition(_MARK.format(block, "begin"))
    _, end, after = rest.partition(_MARK.format(block, "end"))
    assert end, f"{PAGE} has no table for these figures"
    return f"{before}{begin}\n{figures}{end}{after}"


def shown(results: Figures) -> str:
    """Return the tables as Markdown."""
    return _deliveries(results) + ("\n" + lists_table(results["lists"]) if "lists" in results else "")


def _machine(results: Figures) -> str:
    return f"{results['cores']} cores; load average of the last five minutes {results['load']:.1f}.\n\n"


def _deliveries(results: Figures) -> str:
    lines = ["| What | Measured | Aim |", "| --- | --- | --- |"]
    rows = [row for name, rows_of in _ROWS.items() if name in results for row in rows_of(results[name])]
    lines += [f"| {what} | {measured} | {aim} |" for what, measured, aim in rows]
    return _machine(results) + "\n".join(lines) + "\n"


def _rate(rounds: list[Figures]) -> list[Row]:
    ratios = [figures["ratio"] for figures in rounds]
    ours, bare, ours_ms, bare_ms = (median(figures[name] for figures in rounds) for name in ("ours", "bare", "ours_ms", "bare_ms"))
    return [
        (
            f"Deliveries of one worker process and of the bare loop, run alternately; median of {len(rounds)} rounds",
            f"{ours:,.0f}/s and {bare:,.0f}/s: {median(ratios):.0%} ({min(ratios):.0%} to {max(ratios):.0%})",
            "60 %",
        ),
        (
            "Processor time per delivery, of the worker and of the bare loop",
            f"{ours_ms:.2f} ms and {bare_ms:.2f} ms",
            "",
        ),
    ]


def _one_user(one: Figures) -> list[Row]:
    what = f"One user's {one['events']:,.0f} queued events"
    return [(what, f"{one['per_second']:,.0f}/s, {one['out_of_order']:.0f} out of order", "50/s, none")]


def _recovery(recovered: Figures) -> list[Row]:
    what = f"Recovery of {recovered['waiting']:,.0f} waiting deliveries, a process per core"
    return [(what, f"{recovered['seconds']:,.0f} s, {recovered['out_of_order']:.0f} out of order", "60 s, none")]


def _memory(memory: Figures) -> list[Row]:
    what = f"Memory of a worker process over {memory['deliveries']:,.0f} deliveries"
    return [(what, f"{memory['mib']:.0f} MiB, {memory['bytes_per_delivery']:+,.0f} bytes per delivery", "flat")]


def lists_table(lists: list[Figures]) -> str:
    """Return the table with the milliseconds of each list: the first page for each number of rows, the other pages only for the
    largest number of rows."""
    sizes = sorted({figures["rows"] for figures in lists})
    asked = [("first", size) for size in sizes] + [(page, sizes[-1]) for page in ("middle", "filter", "search")]
    found = {(figures["list"], figures["viewer"], figures["page"], figures["rows"]): figures["ms"] for figures in lists}
    heading = [f"first page, {size:,} rows" for size in sizes] + ["in the middle", "filter that finds nothing", "search"]
    lines = [f"| Milliseconds of a page | {' | '.join(heading)} |", "| --- |" + " --- |" * len(heading)]
    for name, viewer in dict.fromkeys((figures["list"], figures["viewer"]) for figures in lists):
        times = [found.get((name, viewer, page, size)) for page, size in asked]
        cells = " | ".join("-" if ms is None else f"{ms:,.0f}" for ms in times)
        lines.append(f"| {name}{_VIEWERS[viewer]} | {cells} |")
    return "\n".join(lines) + "\n"


_VIEWERS = {"tenant": "", "all": ", all tenants"}


# What each scenario adds to the table, in this order.
_ROWS: dict[str, Callable[[Any], list[Row]]] = {
    "rate": _rate,
    "one_user": _one_user,
    "recovery": _recovery,
    "memory": _memory,
}
