"""Checks the deliveries of a stream: `python -m tests.faults.judging_deliveries <stream> <directory of the records> <start>`.

`start` is the position after which the stream began. The checks are valid only if no process has crashed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import django

django.setup()

from events.models import EventStream  # noqa: E402
from tests.faults.delivery_invariants import assert_sound  # noqa: E402


def main(stream_id: str, directory: Path, start: int) -> None:
    """Fail at the first violated invariant."""
    # The command line contains only the id of the stream, and not its tenant.
    assert_sound(EventStream.all_tenants.get(pk=stream_id), directory, crashes=0, after=start)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
