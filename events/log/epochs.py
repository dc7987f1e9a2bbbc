"""What the next epoch of a log is.

One more than the last would not do: a backup that is restored twice would give the same number twice, and cursors made
between the two would be taken for cursors of the second life. So an epoch is never lower than the seconds since 2026,
which are new at every raise and fit into the column until 2094.
"""

from __future__ import annotations

# 2026-01-01T00:00:00Z.
_FIRST_SECOND = 1_767_225_600
NEXT_EPOCH = f"greatest(epoch + 1, floor(extract(epoch FROM clock_timestamp()))::bigint - {_FIRST_SECOND})"
