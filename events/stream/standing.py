"""Ends open streams whose client, tenant or staff session may no longer read.

Once a second, one query reads the state of the clients and tenants of all streams that were opened with a token. Each stream of staff
checks its session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from functools import partial

from django.db import Error as DatabaseError

from authapi.tokens.token_state import StreamState, stream_state
from events.stream.reasons import SIGNED_OUT, TENANT_CLOSED, TENANT_STOPPED, TOKEN_REVOKED, Reason
from events.stream.stream import Stream
from foundation.memory import executor
from identity.stopped_tenants import STOPPED_STATUSES

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0
_SUSPENDED = "suspended"
_CLOSED = frozenset({_SUSPENDED, "deleting", "deleted"})


def ended_by(stream: Stream, state: StreamState) -> Reason | None:
    """Return the reason for which the stream must end, or None. `state` is read each second, so no process has to report a change."""
    held = stream.subscription
    status = state.tenant_statuses.get(held.tenant_id, _SUSPENDED)
    if status in STOPPED_STATUSES:
        return TENANT_STOPPED
    # The status `draining` is not in `_CLOSED`: the subscribers of such a tenant still get its last events.
    if status in _CLOSED:
        return TENANT_CLOSED
    if held.jti in state.revoked_jtis or state.client_versions.get(held.client_id) != held.client_version:
        return TOKEN_REVOKED
    return None


async def watch_standing(streams: Collection[Stream]) -> None:
    """Close streams that must end, until this task is canceled. Runs one query a second for all streams that were opened with a token."""
    while True:
        await asyncio.sleep(_PAUSE_SECONDS)
        if not streams:
            continue
        asked = [stream for stream in streams if stream.subscription.still_stands is None]
        on_their_own = [stream for stream in streams if stream.subscription.still_stands is not None]
        try:
            if asked:
                await _close_unheld(asked)
            if on_their_own:
                await _close_signed_out(on_their_own)
        except (DatabaseError, OSError) as error:
            logger.warning("the conditions for open streams were not read: %s", type(error).__name__)


async def _close_unheld(asked: list[Stream]) -> None:
    question = partial(
        stream_state,
        client_ids={stream.subscription.client_id for stream in asked},
        tenant_ids={stream.subscription.tenant_id for stream in asked},
        jtis={stream.subscription.jti for stream in asked},
    )
    state = await executor.run(question)
    for stream in asked:
        reason = ended_by(stream, state)
        if reason is not None:
            stream.close(reason)


async def _close_signed_out(watched: list[Stream]) -> None:
    gone = await executor.run(lambda: [stream for stream in watched if not _stands(stream)])
    for stream in gone:
        stream.close(SIGNED_OUT)


def _stands(stream: Stream) -> bool:
    still_stands = stream.subscription.still_stands
    return still_stands is None or still_stands()
