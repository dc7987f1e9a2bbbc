"""From the figures of a run to the table of the documentation; the words around it are written by hand."""

from __future__ import annotations

import os

from config.launcher.options import ROOT

PAGE = ROOT / "docs" / "performance.md"
_BEGIN, _END = "<!-- figures of make bench-auth: begin -->", "<!-- figures of make bench-auth: end -->"
_NAMES = {
    "client_credentials": "`client_credentials`, a JWT freshly signed",
    "client_credentials, all cores": "the same, as many processes as cores on both sides",
    "refresh_token": "`refresh_token`, rotated; access token and id token freshly signed",
    "userinfo": "`/userinfo`",
}
_SAML = "login of a SAML application by an open session: a page with a freshly signed response"


def write_document(figures: dict[str, dict[str, float]], *, connections: int) -> None:
    """Replace the figures in the page."""
    before, begin, rest = PAGE.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} has no place for the figures: {_BEGIN}")
    PAGE.write_text(f"{before}{_BEGIN}\n{_table(figures, connections)}\n{_END}{after}")


def _table(figures: dict[str, dict[str, float]], connections: int) -> str:
    load = os.getloadavg()[0]
    lines = [
        f"{connections} connections; load average at the end: {load:.1f}.",
        "",
        "| Requests a second | ours | oidc-provider | to oidc-provider |",
        "| --- | --- | --- | --- |",
    ]
    for scenario, name in _NAMES.items():
        row = figures[scenario]
        lines.append(f"| {name} | {_shown(row, 'ours')} | {_shown(row, 'oidc-provider')} | {_shown(row, 'ratio', '.2f')} |")
    saml = figures["saml"]
    lines += [
        "",
        "| Requests a second | ours | samlp | to samlp |",
        "| --- | --- | --- | --- |",
        f"| {_SAML} | {_shown(saml, 'ours')} | {_shown(saml, 'samlp')} | {_shown(saml, 'ratio', '.2f')} |",
    ]
    first, again = figures["verification"].values()
    lines += ["", f"Checking a token costs `/events` {first:,.0f} µs when it is seen first, and {again:,.0f} µs afterwards."]
    return "\n".join(lines)


def _shown(row: dict[str, float], name: str, form: str = ",.0f") -> str:
    return format(row[name], form) if name in row else "-"
