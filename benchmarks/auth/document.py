"""Turns the figures of a run into the table of the documentation; the surrounding text is written by hand."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.auth.accounts import SERVER
from config.launcher.options import ROOT

PAGE = ROOT / "docs" / "performance.md"
_BEGIN, _END = "<!-- figures of make bench-auth: begin -->", "<!-- figures of make bench-auth: end -->"
_NAMES = {
    "client_credentials": "`client_credentials`, a JWT freshly signed",
    "client_credentials, all cores": "the same; each server has as many processes as the machine has cores",
    "client_credentials, DPoP": "`client_credentials` with a DPoP proof, the JWT bound to its key",
    "refresh_token": "`refresh_token`, rotated; access token and id token freshly signed",
    "userinfo": "`/userinfo`",
    "saml": "login at a SAML application in an open session: a page with a freshly signed response",
}


@dataclass(frozen=True)
class Row:
    """One server in one scenario.

    `processor` has the processor time in milliseconds per request, for each group of processes (`Accounts`). A ratio is the
    figure of our service divided by the figure of this server.
    """

    name: str
    rate: float
    processor: Mapping[str, float]
    processor_ratio: float
    rate_ratio: float

    def __str__(self) -> str:
        spent = ", ".join(f"{account} {value:.3f} ms" for account, value in self.processor.items())
        return f"{self.name}: {spent}; {self.rate:,.0f}/s; our ratios {self.processor_ratio:.2f} and {self.rate_ratio:.2f}"


@dataclass(frozen=True)
class Figures:
    """The rows of a run by scenario, and the cost of checking a token."""

    rows: Mapping[str, Sequence[Row]]
    verification: Mapping[str, float]

    def as_dict(self) -> dict[str, Any]:
        return {"rows": {name: [asdict(row) for row in rows] for name, rows in self.rows.items()}, "verification": dict(self.verification)}


def write_document(figures: Figures, *, connections: int) -> None:
    """Replace the figures in the page."""
    before, begin, rest = PAGE.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} has no place for the figures: {_BEGIN}")
    PAGE.write_text(f"{before}{_BEGIN}\n{_table(figures, connections)}\n{_END}{after}")


def _table(figures: Figures, connections: int) -> str:
    load = os.getloadavg()[0]
    databases = [account for account in next(iter(figures.rows.values()))[0].processor if account != SERVER]
    beside = "".join(f"processor time of {each}, ms | " for each in databases)
    lines = [f"{connections} connections; load average at the end: {load:.1f}."]
    for scenario, name in _NAMES.items():
        if scenario not in figures.rows:
            continue
        lines += [
            "",
            f"{name[0].upper()}{name[1:]}:",
            "",
            f"| Server | processor time a request, ms | ratio | {beside}requests a second | ratio |",
            f"| --- | --- | --- | {'--- | ' * len(databases)}--- | --- |",
        ]
        lines += [_line(row, databases) for row in figures.rows[scenario]]
    if figures.verification:
        first, again = figures.verification.values()
        lines += ["", f"To check a token, `/events` needs {first:,.0f} µs the first time, and {again:,.0f} µs each later time."]
    return "\n".join(lines)


def _line(row: Row, databases: Sequence[str]) -> str:
    beside = "".join(f"{row.processor[each]:.2f} | " for each in databases)
    own = row.name == "ours"
    ratios = ("", "") if own else (f"{row.processor_ratio:.2f}", f"{row.rate_ratio:.2f}")
    return f"| {row.name} | {row.processor[SERVER]:.2f} | {ratios[0]} | {beside}{row.rate:,.0f} | {ratios[1]} |"
