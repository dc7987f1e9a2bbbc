"""Measure how costs grow with tenants, log, streams and web processes: `make bench-scale`.

`--quick` only checks that the benchmark runs. `--document` writes docs/performance.md.

Starts PostgreSQL and Valkey unless DATABASE_URL and REDIS_URL are set. A complete run takes about half an hour and 15 GB of disk.
Compare only figures of the same run.
"""

from __future__ import annotations

import sys

from benchmarks.installation import DELIVERING, installation, run_module
from benchmarks.scale.options import read_options


def main() -> int:
    """Return the exit status of the measurement, which runs in a process of its own with our settings."""
    read_options(sys.argv[1:])
    with installation(**DELIVERING) as environment:
        return run_module("benchmarks.scale.measure", environment["DATA_DIR"], *sys.argv[1:], environment=environment)


if __name__ == "__main__":
    sys.exit(main())
