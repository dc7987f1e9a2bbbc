"""Runs every benchmark of the service, one after another. Starts private durable servers, unless DATABASE_URL and REDIS_URL are set.

Run with `make bench`, or `.venv/bin/python -m benchmarks recording auth` for some of them. Compare figures only with figures of the same
run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from benchmarks.installation import installation, run_module

# For each measurement: its name, further arguments, and what it measures.
MEASUREMENTS: dict[str, tuple[list[str], str]] = {
    "recording": ([], "cost of recording, per save of a user"),
    "user_import": ([], "import of users"),
    "fast_paths": ([], "processor time that fast paths save"),
    "breached_passwords": ([], "one search in a list of breached passwords"),
    "user_search": ([], "searches in a tenant of a million users"),
    "stream": (["--scenarios", "latency", "--subjects", "ours, uvicorn"], "commit to first byte at a subscriber"),
    "traces": ([], "cost of traces, per update of a user"),
    "auth": ([], "tokens, compared with npm oidc-provider"),
    "deliveries": ([], "deliveries against a fast SCIM server"),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(MEASUREMENTS)}; all by default")
    options, further = parser.parse_known_args()
    names = options.names or list(MEASUREMENTS)
    if further and len(names) > 1:
        parser.error(f"{' '.join(further)}: to pass further arguments, name exactly one measurement")
    unknown = sorted(set(names) - set(MEASUREMENTS))
    if unknown:
        parser.error(f"there is no measurement {', '.join(unknown)}")
    with installation() as environment:
        return max(_measure(name, further, environment) for name in names)


def _measure(name: str, further: list[str], environment: Mapping[str, str]) -> int:
    arguments, figure = MEASUREMENTS[name]
    print(f"\n{name}: {figure}", flush=True)
    return run_module(f"benchmarks.{name}", *arguments, *further, environment=environment)


if __name__ == "__main__":
    sys.exit(main())
