"""Decisions about dead letters: acknowledge, ignore, resolve, reopen.

A decision never sends an event. Every dead letter stays listed, counted and redeliverable until its retention ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.utils import timezone

from events.models import EventStream
from foundation.database.statements import execute
from foundation.database.transactions import unit_of_work
from identity.services.failures import Invalid, NotFound
from provisioning.models import DeadLetter, IgnoredKind

State = DeadLetter.State
# States in which the destination does not have the event. The state `redelivered` is not one of them: the result of the new delivery is not
# known yet.
UNSETTLED = (State.OPEN, State.ACKNOWLEDGED, State.IGNORED)
_DECISIONS = frozenset({State.OPEN, State.ACKNOWLEDGED, State.IGNORED, State.RESOLVED})
BY_HAND = "by hand"
LONGEST_REASON = 500

# Rows are locked in the order in which redeliveries lock them, to avoid deadlocks. Dead letters that are being redelivered, or that a
# delivery has resolved, are skipped. A row that changed during the wait for its lock is checked again.
_DECIDABLE = """
SELECT l.id FROM provisioning_deadletter l JOIN provisioning_delivery d ON d.id = l.delivery_id
WHERE l.tenant_id = %(tenant)s AND l.state <> %(state)s AND d.state = 'dead'
    AND (l.state IN ('open', 'acknowledged', 'ignored') OR (l.state = 'resolved' AND %(state)s = 'open'))
"""
_LOCKED_IN_ORDER = "ORDER BY l.stream_id, l.key, d.position FOR NO KEY UPDATE OF l"
_DECIDE = """
UPDATE provisioning_deadletter l SET state = %(state)s, triaged_at = clock_timestamp(), triage_actor = %(actor)s,
    triage_reason = %(reason)s, resolution = CASE WHEN %(state)s = 'resolved' THEN %(by_hand)s ELSE '' END,
    resolved_at = CASE WHEN %(state)s = 'resolved' THEN clock_timestamp() END
FROM chosen WHERE l.id = chosen.id
"""
_DECIDE_NAMED = f"""
WITH chosen AS MATERIALIZED ({_DECIDABLE} AND l.id = ANY(%(ids)s) {_LOCKED_IN_ORDER}) {_DECIDE}
"""
_DECIDE_KIND = f"""
WITH chosen AS MATERIALIZED (
    {_DECIDABLE} AND l.stream_id = %(stream)s AND l.fingerprint = %(fingerprint)s AND l.state <> 'resolved' {_LOCKED_IN_ORDER}
) {_DECIDE}
"""


@unit_of_work
def decide(*, tenant_id: str, letter_ids: Iterable[int], state: str, reason: str, actor: str) -> int:
    """Set the state of dead letters of the tenant: open, acknowledged, ignored or resolved; return the number of changed dead letters.

    Skips dead letters that already have the state or are being redelivered. A resolved dead letter can be reopened while its event is
    undelivered. Idempotent. Raises `Invalid` without a reason.
    """
    values = {"tenant": tenant_id, "ids": sorted(set(letter_ids)), **_decision(state, reason, actor)}
    return execute(_DECIDE_NAMED, values)


@unit_of_work
def decide_kind(*, tenant_id: str, stream_id: str, fingerprint: str, state: str, reason: str, actor: str) -> int:
    """Apply `decide` to every unsettled dead letter of one kind of failure on one stream."""
    return execute(_DECIDE_KIND, {"tenant": tenant_id, "stream": stream_id, "fingerprint": fingerprint, **_decision(state, reason, actor)})


@unit_of_work
def ignore_kind(*, tenant_id: str, stream_id: str, fingerprint: str, until: datetime, reason: str, actor: str) -> int:
    """Ignore existing and new dead letters of a kind of failure on one stream until `until`. Return the number of existing dead letters.

    Raises `NotFound` for a stream of another tenant, and `Invalid` for a time in the past or a missing reason.
    """
    decision = _decision(State.IGNORED, reason, actor)
    if until <= timezone.now():
        raise Invalid({"until": ["A time in the future is expected."]})
    if not fingerprint or not EventStream.objects.of(tenant_id).filter(pk=stream_id).exists():
        raise NotFound("The kind of failure does not exist.")
    told = {"tenant_id": tenant_id, "until": until, "reason": decision["reason"], "actor": decision["actor"], "created_at": timezone.now()}
    IgnoredKind.objects.update_or_create(stream_id=stream_id, fingerprint=fingerprint, defaults=told)
    return execute(_DECIDE_KIND, {"tenant": tenant_id, "stream": stream_id, "fingerprint": fingerprint, **decision})


@unit_of_work
def stop_ignoring(*, tenant_id: str, stream_id: str, fingerprint: str) -> bool:
    """Stop ignoring new dead letters of a kind; existing dead letters keep their state. Return False if the kind was not ignored."""
    count, _ = IgnoredKind.objects.filter(tenant_id=tenant_id, stream_id=stream_id, fingerprint=fingerprint).delete()
    return count > 0


def _decision(state: str, reason: str, actor: str) -> dict[str, str]:
    if state not in _DECISIONS:
        raise Invalid({"state": [f"Not a decision: {state[:32]}."]})
    said = " ".join(reason.replace("\0", "").split())
    if not said:
        raise Invalid({"reason": ["Enter a reason."]})
    return {"state": str(state), "reason": said[:LONGEST_REASON], "actor": actor[:254], "by_hand": BY_HAND}
