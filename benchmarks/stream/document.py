"""Turns the figures of a run into the tables and the plot of the documentation; the surrounding text is written by hand."""

from __future__ import annotations

from typing import Any

from benchmarks.stream.plot import Panel, drawn
from config.launcher.options import ROOT

PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "images" / "event-stream.svg"
_BEGIN, _END = "<!-- figures of make bench-stream: begin -->", "<!-- figures of make bench-stream: end -->"
_NONE = "-"
# On a machine with two cores, the load average during a run is higher only if other programs run, too.
_LOAD_PER_CORE = 2.0
# Ratios are computed against this peer.
_PEER = "nchan"

Figures = dict[str, Any]


class Results:
    """The figures of one run by scenario, server and shape."""

    def __init__(self, run: Figures) -> None:
        self.run = run
        self._results: list[Figures] = run["results"]

    @property
    def subjects(self) -> list[str]:
        """The servers in the order in which they were measured."""
        return list(dict.fromkeys(figures["subject"] for figures in self._results))

    def value(self, scenario: str, subject: str, name: str, **given: Any) -> float | None:
        """Return one figure, or None when it was not measured."""
        for figures in self._results:
            if (figures["scenario"], figures["subject"]) == (scenario, subject) and given.items() <= figures.items():
                return float(figures[name]) if name in figures else None
        return None

    def all(self, name: str) -> list[float]:
        """Return every value of this name, over all scenarios and servers."""
        return [float(figures[name]) for figures in self._results if name in figures]


def write_document(run: Figures) -> None:
    """Replace the figures in the page, and the plot."""
    results = Results(run)
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    PAGE.write_text(f"{before}{_BEGIN}\n{figures_of(results)}{_END}{after}")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(drawn(panels(results)))


def figures_of(results: Results) -> str:
    """Return the machine and the three tables as Markdown."""
    parts = [_machine(results), _fan_out(results), _streams(results), _own(results)]
    parts += ["".join(f"Left out: {sentence}.\n" for sentence in results.run["left_out"])]
    return "\n".join(part for part in parts if part)


def panels(results: Results) -> list[Panel]:
    """Return the panels of the plot."""
    one, many = _shapes(results)
    wanted = [
        (f"Processor time per frame, {one} streams (µs)", "fanout", "us_per_frame", {"shape": one}, "less is better"),
        (f"Processor time per frame, {many} streams (µs)", "fanout", "us_per_frame", {"shape": many}, "less is better"),
        (f"Burst of {results.run['sizes']['burst']} events, {one} streams (frames/s)", "burst", "frames_per_second", {}, "more is better"),
        (f"Memory per idle stream, {many} streams (KiB)", "idle", "kib_per_stream", {"shape": many}, "less is better"),
        (f"New streams, {many}, 64 at a time (1/s)", "connects", "connects_per_second", {}, "more is better"),
    ]
    made = []
    for title, scenario, name, given, direction in wanted:
        bars = [(subject, results.value(scenario, subject, name, **given)) for subject in results.subjects]
        made.append(Panel(title, direction, [(subject, value) for subject, value in bars if value is not None]))
    return [panel for panel in made if panel.bars]


def _shapes(results: Results) -> tuple[str, str]:
    streams = results.run["sizes"]["streams"]
    return f"1 x {streams}", f"{streams // 8} x 8"


def _machine(results: Results) -> str:
    told = dict(results.run["machine"])
    general = f"{told.pop('cores')} cores ({told.pop('processor')}), {told.pop('kernel')}"
    reader = told.pop("reader")
    versions = ", ".join(f"{name.replace('_', ' ')} {version}" for name, version in told.items())
    loads = results.all("load_average")
    costs = results.all("reader_us_per_frame")
    lines = [f"{general}. Versions: {versions}."]
    if loads:
        lines.append(f"Load average during the run: {min(loads):.1f} to {max(loads):.1f}.")
        if max(loads) > _LOAD_PER_CORE * int(results.run["machine"]["cores"]):
            lines.append(
                "Other work was running on the machine, so every server is slower than on an idle machine. "
                "The effect is largest for our server, because it needs a database."
            )
    if costs:
        lines.append(f"The reader ({reader}) took {min(costs):.1f} to {max(costs):.1f} µs per frame.")
    return "\n".join(lines) + "\n"


def _fan_out(results: Results) -> str:
    one, many = _shapes(results)
    burst = results.run["sizes"]["burst"]
    rows = []
    for subject in results.subjects:
        single = results.value("fanout", subject, "us_per_frame", shape=one)
        spread = results.value("fanout", subject, "us_per_frame", shape=many)
        rate = results.value("burst", subject, "frames_per_second")
        if (single, spread, rate) != (None, None, None):
            ratios = (
                _ratio(single, results.value("fanout", _PEER, "us_per_frame", shape=one)),
                _ratio(spread, results.value("fanout", _PEER, "us_per_frame", shape=many)),
                _ratio(rate, results.value("burst", _PEER, "frames_per_second")),
            )
            rows.append([subject, _shown(single, 1), ratios[0], _shown(spread, 1), ratios[1], _shown(rate, 0), ratios[2]])
    head = [
        "Server",
        f"µs per frame, {one}",
        "ratio to nchan",
        f"µs per frame, {many}",
        "ratio to nchan",
        f"burst of {burst}, frames/s",
        "ratio to nchan",
    ]
    return _table(head, rows)


def _streams(results: Results) -> str:
    _, many = _shapes(results)
    most = results.run["sizes"]["many_streams"]
    rows = []
    for subject in results.subjects:
        cells = [
            _shown(results.value("connects", subject, "connects_per_second"), 0),
            _shown(results.value("idle", subject, "kib_per_stream", shape=many), 1),
            _shown(results.value("idle", subject, "kib_per_stream", streams=most), 1),
            _shown(results.value("idle", subject, "idle_percent", streams=most), 1),
        ]
        if any(cell != _NONE for cell in cells):
            rows.append([subject, *cells])
    head = ["Server", "new streams/s", f"KiB per idle stream, {many}", f"KiB, {most} streams", f"% of a core idle, {most} streams"]
    return _table(head, rows)


def _own(results: Results) -> str:
    rows = []
    for subject in results.subjects:
        for streams in (1, 8):
            times = [results.value("latency", subject, name, streams=streams) for name in ("p50_ms", "p99_ms", "ratio_to_floor")]
            if times[0] is not None:
                rows.append(
                    [
                        f"{subject}: first byte, {streams} stream{'s' if streams > 1 else ''}",
                        f"p50 {_shown(times[0], 1)} ms, p99 {_shown(times[1], 1)} ms",
                    ]
                )
                rows[-1].append(_NONE if times[2] is None else f"{times[2]:.1f} times the bare commit")
        rate, ratio = (results.value("replay", subject, name) for name in ("events_per_second", "ratio_to_bare"))
        if rate is not None and ratio is not None:
            rows.append([f"{subject}: replay of one stream", f"{rate:,.0f} events/s", f"{ratio:.2f} of a bare psycopg fetch"])
    return _table(["Latency and replay", "Measured", "Compared with"], rows)


def _table(head: list[str], rows: list[list[str]]) -> str:
    if not rows:
        return ""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _shown(value: float | None, digits: int) -> str:
    return _NONE if value is None else f"{value:,.{digits}f}"


def _ratio(value: float | None, peer: float | None) -> str:
    return _NONE if value is None or not peer else f"{value / peer:.2f}"
