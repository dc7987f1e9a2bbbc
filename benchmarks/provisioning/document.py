"""From the figures of a run to the table of the documentation; the words around it are written by hand."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from config.launcher.options import ROOT

PAGE = ROOT / "docs" / "performance.md"
_BEGIN, _END = "<!-- figures of make bench-provisioning: begin -->", "<!-- figures of make bench-provisioning: end -->"

Figures = dict[str, Any]
Row = tuple[str, str, str]


def write_document(results: Figures) -> None:
    """Replace the figures in the page."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    PAGE.write_text(f"{before}{_BEGIN}\n{shown(results)}{_END}{after}")


def shown(results: Figures) -> str:
    """Return the table as Markdown."""
    lines = [
        f"{results['cores']} cores; load average of the last five minutes {results['load']:.1f}.",
        "",
        "| What | Measured | Aim |",
        "| --- | --- | --- |",
    ]
    rows = [row for name, rows_of in _ROWS.items() if name in results for row in rows_of(results[name])]
    lines += [f"| {what} | {measured} | {aim} |" for what, measured, aim in rows]
    return "\n".join(lines) + "\n"


def _rate(rounds: list[Figures]) -> list[Row]:
    ratios = [figures["ratio"] for figures in rounds]
    ours, bare, ours_ms, bare_ms = (median(figures[name] for figures in rounds) for name in ("ours", "bare", "ours_ms", "bare_ms"))
    return [
        (
            f"Deliveries of one worker process, median of {len(rounds)} rounds in turn with the bare loop",
            f"{ours:,.0f}/s beside {bare:,.0f}/s: {median(ratios):.0%} ({min(ratios):.0%} to {max(ratios):.0%})",
            "60 %",
        ),
        (
            "Processor time of one delivery: the whole worker, beside the process of the bare loop",
            f"{ours_ms:.2f} ms beside {bare_ms:.2f} ms",
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


def _lists(lists: list[Figures]) -> list[Row]:
    sizes = sorted({figures["rows"] for figures in lists})
    rows = []
    for name in dict.fromkeys(figures["list"] for figures in lists):
        times = [next(figures["ms"] for figures in lists if (figures["list"], figures["rows"]) == (name, size)) for size in sizes]
        measured = ", ".join(f"{ms:,.0f} ms at {size:,}" for ms, size in zip(times, sizes, strict=True))
        rows.append((f"First page of the {name} in the admin, by rows", measured, "300 ms, flat"))
    return rows


# What each scenario adds to the table, in this order.
_ROWS: dict[str, Callable[[Any], list[Row]]] = {
    "rate": _rate,
    "one_user": _one_user,
    "recovery": _recovery,
    "memory": _memory,
    "lists": _lists,
}
