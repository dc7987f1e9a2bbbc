"""Compares the cost of tokens with npm oidc-provider, and of SAML responses with npm samlp. Each server has one process, except in the
scenario with all cores. Also measures how long `/events` takes to check a token.

    make bench-auth                                                writes the figures into docs/performance.md
    .venv/bin/python -m benchmarks auth                            only prints the figures
    .venv/bin/python -m benchmarks auth --scenarios refresh_token  measures this scenario only

The measurements of our service and of the peers alternate, so that a machine that slows down affects all servers equally. Each figure is
the median of the rounds, and each ratio the median of the ratios of the rounds. The processor time of a server is the time of its
processes, including kernel time; PostgreSQL and Redis are listed separately.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import django

from benchmarks.auth.accounts import SERVER, Accounts, databases
from benchmarks.auth.document import Figures, Row, write_document
from benchmarks.auth.load import Measured, NextRequest, measured
from benchmarks.auth.saml import SamlSubject, own_provider, samlp
from benchmarks.auth.subjects import Subject, oidc_provider, ours

_Server = TypeVar("_Server", Subject, SamlSubject)
_Requests = Callable[[_Server, int, float], list[NextRequest]]

# In the first two and a half minutes with a new Redis, the service requires a nonce in each DPoP proof. So the scenario with DPoP proofs is
# last.
SCENARIOS: dict[str, _Requests[Subject]] = {
    "client_credentials": Subject.client_credentials,
    "refresh_token": Subject.refresh,
    "userinfo": Subject.userinfo,
    "client_credentials, DPoP": Subject.bound_client_credentials,
}
# Scenarios in which the peer stores or reads rows. In these scenarios the run also measures the peer with its rows in PostgreSQL.
_WITH_ROWS = ("refresh_token", "userinfo")
_ALL_CORES, _SAML, _VERIFICATION = "client_credentials, all cores", "saml", "verification"
# More connections would exceed a rate limit. Before the measurement, one login is made for each connection, all from the same IP address,
# and the limits of logins are active.
_MOST_CONNECTIONS = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.auth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*SCENARIOS, _ALL_CORES, _SAML, _VERIFICATION]
    parser.add_argument("--seconds", type=float, default=4.0, help="length of one measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=8, choices=range(1, _MOST_CONNECTIONS + 1), metavar="1-10")
    parser.add_argument("--scenarios", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--json", type=Path, help="write the figures into this file as well")
    parser.add_argument("--document", action="store_true", help="write the figures into docs/performance.md; needs a run of all scenarios")
    options = parser.parse_args()
    if options.document and options.scenarios != names:
        parser.error("--document requires a run of all scenarios, because the page shows all of them")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.development")
    django.setup()
    figures = Measurement(options.rounds, options.seconds, options.connections).figures(options.scenarios)
    for name, rows in figures.rows.items():
        for row in rows:
            print(f"{name}: {row}")
    if figures.verification:
        print(f"verification: {', '.join(f'{name} {value:,.1f}' for name, value in figures.verification.items())}")
    if options.json:
        options.json.write_text(json.dumps(figures.as_dict(), indent=2))
    if options.document:
        write_document(figures, connections=options.connections)
    return 0


class Measurement:
    """Parameters of a run: rounds, seconds per round, and connections."""

    def __init__(self, rounds: int, seconds: float, connections: int) -> None:
        self._rounds, self._seconds, self._connections = rounds, seconds, connections
        self._databases = databases()

    def figures(self, scenarios: Sequence[str]) -> Figures:
        """Measure these scenarios, in the order of the table."""
        found: dict[str, list[Row]] = {}
        wanted = [name for name in SCENARIOS if name in scenarios]
        if wanted:
            found |= self._beside_each_other(wanted)
        if _ALL_CORES in scenarios:
            cores = os.cpu_count() or 1
            with ours(1, processes=cores) as own, oidc_provider(1, processes=cores) as peer:
                found[_ALL_CORES] = self._in_turn((own, peer), Subject.client_credentials)
        if _SAML in scenarios:
            with own_provider(self._connections) as saml, samlp(self._connections) as peer_of_saml:
                found[_SAML] = self._in_turn((saml, peer_of_saml), SamlSubject.logins)
        return Figures(found, verification() if _VERIFICATION in scenarios else {})

    def _beside_each_other(self, scenarios: Sequence[str]) -> dict[str, list[Row]]:
        with ExitStack() as stack:
            subjects = [stack.enter_context(ours(self._connections)), stack.enter_context(oidc_provider(self._connections))]
            if not set(_WITH_ROWS).isdisjoint(scenarios):
                subjects.append(stack.enter_context(oidc_provider(self._connections, in_postgresql=True)))
            return {name: self._in_turn(subjects if name in _WITH_ROWS else subjects[:2], SCENARIOS[name]) for name in scenarios}

    def _in_turn(self, subjects: Sequence[_Server | None], requests: _Requests[_Server]) -> list[Row]:
        present = [subject for subject in subjects if subject is not None]
        runs: dict[str, list[Measured]] = {subject.name: [] for subject in present}
        for _ in range(self._rounds):
            for subject in present:
                runs[subject.name].append(self._run(subject, requests(subject, self._connections, self._seconds)))
        own = next(iter(runs.values()))
        return [_row(name, each, own) for name, each in runs.items()]

    def _run(self, subject: Subject | SamlSubject, requests: list[NextRequest]) -> Measured:
        accounts = Accounts({SERVER: subject.pid, **self._databases})
        return asyncio.run(measured(subject.port, requests, seconds=self._seconds, accounts=accounts))


def _row(name: str, runs: Sequence[Measured], own: Sequence[Measured]) -> Row:
    accounts: Mapping[str, float] = {account: statistics.median(run.processor[account] for run in runs) for account in runs[0].processor}
    return Row(
        name=name,
        rate=statistics.median(run.rate for run in runs),
        processor=dict(accounts),
        processor_ratio=statistics.median(mine.processor[SERVER] / run.processor[SERVER] for mine, run in zip(own, runs, strict=True)),
        rate_ratio=statistics.median(mine.rate / run.rate for mine, run in zip(own, runs, strict=True)),
    )


def verification(count: int = 400) -> dict[str, float]:
    """Return the microseconds in which `/events` checks a token: a new token, and a token that it has checked before."""
    # These modules can be imported only after Django is set up.
    from authapi.tokens.verifying import verify_access_token  # noqa: PLC0415
    from benchmarks.stream.world import World  # noqa: PLC0415
    from identity.hosts import resolve_host  # noqa: PLC0415

    member = World().members(1)[0]
    host = resolve_host(member.host)
    assert host is not None
    tokens = [member.token() for _ in range(count)]
    verify_access_token(tokens[0], host=host)
    spent = []
    for _ in range(2):
        begun = time.process_time()
        for token in tokens:
            verify_access_token(token, host=host)
        spent.append((time.process_time() - begun) / count * 1e6)
    return {"first, µs": spent[0], "again, µs": spent[1]}


if __name__ == "__main__":
    sys.exit(main())
