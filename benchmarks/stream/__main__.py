"""Measure the event stream and other servers in one run: `make bench-stream`, or this module with options.

Starts PostgreSQL and Valkey unless DATABASE_URL and REDIS_URL are set. Then migrates, measures and prints the figures. On request, writes
the figures as JSON, and the tables and the plot of the documentation. Compare only figures of the same run.
"""

from __future__ import annotations

import sys

from benchmarks.installation import installation, run_module
from benchmarks.stream.options import read_options


def main() -> int:
    """Run the measurement in a separate process with the settings of this project, and return its exit status."""
    read_options(sys.argv[1:])
    # No worker runs during the measurement, so no process would receive nudges.
    with installation(DELIVERY_NUDGES_ENABLED="0") as environment:
        return run_module("benchmarks.stream.measure", environment["DATA_DIR"], *sys.argv[1:], environment=environment)


if __name__ == "__main__":
    sys.exit(main())
