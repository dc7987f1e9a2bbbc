"""Measure provisioning on private durable servers: `make bench-provisioning`. `--quick` only checks that the benchmark runs, `--document`
writes the figures into docs/performance.md.

Uses DATABASE_URL and REDIS_URL where they are set. Compare only figures of the same run.
"""

from __future__ import annotations

import sys

from benchmarks.installation import DELIVERING, installation, run_module


def main() -> int:
    """Return the exit status of the measurement, which runs in a process of its own with our settings."""
    with installation(**DELIVERING) as environment:
        return run_module("benchmarks.provisioning.measure", *sys.argv[1:], environment=environment)


if __name__ == "__main__":
    sys.exit(main())
