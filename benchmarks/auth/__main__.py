"""Tokens a second beside npm oidc-provider, SAML responses beside npm samlp: one process each, in turn, in one run; and what
checking a token costs `/events`.

    make bench-auth                                                into docs/performance.md
    .venv/bin/python -m benchmarks auth                            prints only

Each figure is the median of the rounds; ours and the peer's alternate, so that a machine that slows down slows both.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import django

from benchmarks.auth.document import write_document
from benchmarks.auth.load import NextRequest, rate
from benchmarks.auth.saml import SamlSubject, own_provider, samlp
from benchmarks.auth.subjects import Subject, oidc_provider, ours

_Server = TypeVar("_Server", Subject, SamlSubject)

SCENARIOS: dict[str, Callable[[Subject, int], list[NextRequest]]] = {
    "client_credentials": Subject.client_credentials,
    "refresh_token": Subject.refresh,
    "userinfo": Subject.userinfo,
}
# People log in at most so often a minute from one address, in a measurement too.
_MOST_CONNECTIONS = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.auth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of one measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=8, choices=range(1, _MOST_CONNECTIONS + 1), metavar="1-10")
    parser.add_argument("--document", action="store_true", help="write the figures into docs/performance.md")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.development")
    django.setup()
    figures = measured(rounds=options.rounds, seconds=options.seconds, connections=options.connections)
    figures["verification"] = verification()
    for name, row in figures.items():
        print(f"{name}: " + ", ".join(f"{subject} {value:,.1f}" for subject, value in row.items()))
    if options.document:
        write_document(figures, connections=options.connections)
    return 0


def measured(*, rounds: int, seconds: float, connections: int) -> dict[str, dict[str, float]]:
    """Return requests a second per scenario and server, and the median of the ratios of the rounds."""
    run = partial(_in_turn, rounds=rounds, seconds=seconds, connections=connections)
    with ours(connections) as own, oidc_provider(connections) as peer:
        found = {scenario: run((own, peer), requests) for scenario, requests in SCENARIOS.items()}
    cores = os.cpu_count() or 1
    with ours(1, processes=cores) as own, oidc_provider(1, processes=cores) as peer:
        found["client_credentials, all cores"] = run((own, peer), Subject.client_credentials)
    with own_provider(connections) as own, samlp(connections) as peer:
        found["saml"] = run((own, peer), SamlSubject.logins)
    return found


def _in_turn(
    subjects: tuple[_Server, _Server | None],
    requests: Callable[[_Server, int], list[NextRequest]],
    *,
    rounds: int,
    seconds: float,
    connections: int,
) -> dict[str, float]:
    present = [subject for subject in subjects if subject is not None]
    rates: dict[str, list[float]] = {subject.name: [] for subject in present}
    for _ in range(rounds):
        for subject in present:
            rates[subject.name].append(asyncio.run(rate(subject.port, requests(subject, connections), seconds=seconds)))
    found = {name: statistics.median(values) for name, values in rates.items()}
    if len(present) > 1:
        pairs = zip(*rates.values(), strict=True)
        found["ratio"] = statistics.median(one / other for one, other in pairs)
    return found


def verification(count: int = 400) -> dict[str, float]:
    """Return microseconds that checking a token takes `/events`: seen for the first time, and again."""
    # Models may be imported only once Django is set up.
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
