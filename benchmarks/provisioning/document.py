"""From the figures of a run to the table of the documentation; the words around it are written by hand."""

from __future__ import annotations

from statistics import median
from typing import Any

from config.launcher.options import ROOT

PAGE = ROOT / "docs" / "performance.md"
_BEGIN, _END = "<!-- figures of make bench-provisioning: begin -->", "<!-- figures of make bench-provisioning: end -->"

Figures = dict[str, Any]


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
    lines += [f"| {what} | {measured} | {aim} |" for what, measured, aim in (*_engine(results), *_lists(results["lists"]))]
    return "\n".join(lines) + "\n"


def _engine(results: Figures) -> list[tuple[str, str, str]]:
    rounds, one, recovered, memory = (results[name] for name in ("rate", "one_user", "recovery", "memory"))
    ratios = [figures["ratio"] for figures in rounds]
    ours, bare = (median(figures[name] for figures in rounds) for name in ("ours", "bare"))
    return [
        (
            f"Deliveries of one worker process, median of {len(rounds)} rounds in turn with the bare loop",
            f"{ours:,.0f}/s beside {bare:,.0f}/s: {median(ratios):.0%} ({min(ratios):.0%} to {max(ratios):.0%})",
            "60 %",
        ),
        (
            f"One user's {one['events']:,.0f} queued events",
            f"{one['per_second']:,.0f}/s, {one['out_of_order']:.0f} out of order",
            "50/s, none",
        ),
        (
            f"Recovery of {recovered['waiting']:,.0f} waiting deliveries, a process per core",
            f"{recovered['seconds']:,.0f} s, {recovered['out_of_order']:.0f} out of order",
            "60 s, none",
        ),
        (
            f"Memory of a worker process over {memory['deliveries']:,.0f} deliveries",
            f"{memory['mib']:.0f} MiB, {memory['bytes_per_delivery']:+,.0f} bytes per delivery",
            "flat",
        ),
    ]


def _lists(lists: list[Figures]) -> list[tuple[str, str, str]]:
    sizes = sorted({figures["rows"] for figures in lists})
    rows = []
    for name in dict.fromkeys(figures["list"] for figures in lists):
        times = [next(figures["ms"] for figures in lists if (figures["list"], figures["rows"]) == (name, size)) for size in sizes]
        measured = ", ".join(f"{ms:,.0f} ms at {size:,}" for ms, size in zip(times, sizes, strict=True))
        rows.append((f"First page of the {name} in the admin, by rows", measured, "300 ms, flat"))
    return rows
