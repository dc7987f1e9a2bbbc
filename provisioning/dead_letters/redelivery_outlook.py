"""Predicts a redelivery of many dead letters from stored rows: kinds of failure, and events that would not be sent. Only reads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Max, QuerySet

from identity.models import User
from provisioning.models import DeadLetter, Delivery
from provisioning.runs.current_profile import USER_DELETED

# The largest number of dead letters that one prediction reads.
MOST_READ = 1_000
_PREFIX = "user:"


@dataclass(frozen=True)
class OutlookKind:
    """Dead letters with the same event type and the same kind of failure."""

    event_type: str
    failure: str
    count: int
    sent: int


@dataclass(frozen=True)
class Outlook:
    """The outcome of a redelivery without force.

    `blocked`: deletions whose users exist again. `superseded`: events older than a written event.
    """

    kinds: list[OutlookKind]
    sent: int
    blocked: int
    superseded: int

    @property
    def sentences(self) -> list[str]:
        """The outcome in sentences for a confirmation."""
        said = [f"{self.sent:,} {'event' if self.sent == 1 else 'events'} would be sent."]
        if self.blocked:
            said.append(
                "1 deletion would not be sent: its user exists again."
                if self.blocked == 1
                else f"{self.blocked:,} deletions would not be sent: their users exist again."
            )
        if self.superseded:
            noun = "event" if self.superseded == 1 else "events"
            said.append(f"{self.superseded:,} {noun} would end as superseded: a newer event of the same user was written.")
        return said

    @property
    def sentence_about_force(self) -> str:
        """What a redelivery with force would change; empty if it would change nothing."""
        unsent = self.blocked + self.superseded
        if not unsent:
            return ""
        return "By force, this event would be sent as well." if unsent == 1 else f"By force, these {unsent:,} events would be sent as well."


def outlook_of(letters: QuerySet[DeadLetter] | Iterable[DeadLetter]) -> Outlook:
    """Return the outcome for the first `MOST_READ` of these dead letters. If they are no query set, their deliveries must be loaded."""
    if isinstance(letters, QuerySet):
        letters = letters.select_related("delivery").defer("body", "rebuilt_body")
    read = list(letters)[:MOST_READ]
    written, living = _last_written(read), _living(read)
    kinds: Counter[tuple[str, str]] = Counter()
    unsent: Counter[tuple[str, str]] = Counter()
    blocked = superseded = 0
    for letter in read:
        kind = letter.event_type, f"{letter.error_status or letter.error_class}: {letter.reason}"[:200]
        kinds[kind] += 1
        if letter.event_type == USER_DELETED and (letter.tenant_id, letter.key) in living:
            blocked += 1
            unsent[kind] += 1
        elif written.get((letter.stream_id, letter.key), 0) > letter.delivery.position:
            superseded += 1
            unsent[kind] += 1
    named = [OutlookKind(*kind, count, count - unsent[kind]) for kind, count in kinds.most_common()]
    return Outlook(named, len(read) - blocked - superseded, blocked, superseded)


def _last_written(letters: Iterable[DeadLetter]) -> dict[tuple[str, str], int]:
    """Return the position of the last written event, by stream and key."""
    streams, keys = {letter.stream_id for letter in letters}, {letter.key for letter in letters}
    rows = Delivery.objects.filter(stream_id__in=streams, key__in=keys, is_written=True)
    return {(stream, key): last for stream, key, last in rows.values_list("stream_id", "key").annotate(last=Max("position"))}


def _living(letters: Iterable[DeadLetter]) -> set[tuple[str, str]]:
    """Return tenant and key of each deletion whose user exists again."""
    ids: dict[str, set[str]] = defaultdict(set)
    for letter in letters:
        if letter.event_type == USER_DELETED and letter.key.startswith(_PREFIX):
            ids[letter.tenant_id].add(letter.key.removeprefix(_PREFIX))
    found = {tenant: User.objects.of(tenant).filter(user_id__in=own).values_list("user_id", flat=True) for tenant, own in ids.items()}
    return {(tenant, f"{_PREFIX}{user_id}") for tenant, users in found.items() for user_id in users}
