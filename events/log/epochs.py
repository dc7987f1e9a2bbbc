"""The SQL expression for the next epoch of a log.

The present epoch plus one would not be unique. After two restores of one backup, the log would get the same epoch twice. Cursors that were
issued between the two restores would then be accepted after the second restore. So a new epoch is at least the number of seconds since the
start of 2026. This number differs each time, and fits into the column until 2094.
"""

from __future__ import annotations

# 2026-01-01T00:00:00Z.
_FIRST_SECOND = 1_767_225_600
NEXT_EPOCH = f"greatest(epoch + 1, floor(extract(epoch FROM clock_timestamp()))::bigint - {_FIRST_SECOND})"
