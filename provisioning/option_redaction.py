"""Removes secret options of connections from dead letters, deliveries and attempts (docs/adr/0075)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import transaction

from events.log.envelope import encode_stored
from events.log.option_redaction import CONNECTION_EVENTS, Redaction, redaction_of
from events.log.stored_envelope import envelope_of
from provisioning.models import Attempt, DeadLetter, Delivery
from provisioning.runs.masking import Mask

_AT_ONCE = 100
_BODIES = ("body", "rebuilt_body")
# Replaces a truncated body, because secrets cannot be found in incomplete JSON.
REMOVED = "(removed: it held options of a connection)"


def letter_redactions(tenant_id: str) -> Iterator[tuple[int, str, Redaction]]:
    """Yield key, column and redaction of each envelope that a dead letter stores and that contains secrets of a connection."""
    last = 0
    rows = DeadLetter.objects.filter(tenant_id=tenant_id, event_type__in=CONNECTION_EVENTS).order_by("pk")
    while chunk := list(rows.filter(pk__gt=last)[:_AT_ONCE]):
        for letter in chunk:
            for column in _BODIES:
                body = getattr(letter, column)
                found = redaction_of(envelope_of(body)) if body is not None else None
                if found is not None and found.removed:
                    yield letter.pk, column, found
        last = chunk[-1].pk


def redact_letters(tenant_id: str, mask: Mask) -> int:
    """Rewrite envelopes and reasons of the tenant's dead letters of connection events; return the number of rewritten envelopes."""
    count = 0
    for key, column, found in letter_redactions(tenant_id):
        count += DeadLetter.objects.filter(pk=key).update(**{column: found.body})
    for letter in DeadLetter.objects.filter(tenant_id=tenant_id, event_type__in=CONNECTION_EVENTS).only("reason").iterator():
        if mask.text(letter.reason) != letter.reason:
            DeadLetter.objects.filter(pk=letter.pk).update(reason=mask.text(letter.reason))
    return count


def redact_attempts(tenant_id: str, mask: Mask, *, is_applied: bool) -> int:
    """Mask the values in attempts and deliveries of the tenant's connection events; return the number of rows changed."""
    count, last = 0, 0
    rows = Delivery.objects.filter(tenant_id=tenant_id, event_type__in=CONNECTION_EVENTS).order_by("pk")
    while chunk := list(rows.filter(pk__gt=last).only("detail", "error_message")[:_AT_ONCE]):
        with transaction.atomic():
            for attempt in Attempt.objects.filter(delivery__in=chunk):
                count += _redact_attempt(attempt, mask, is_applied=is_applied)
            for delivery in chunk:
                count += _redact_delivery(delivery, mask, is_applied=is_applied)
        last = chunk[-1].pk
    return count


def _redact_attempt(attempt: Attempt, mask: Mask, *, is_applied: bool) -> bool:
    changes = {
        "exchanges": [_exchange(exchange, mask) for exchange in attempt.exchanges],
        "log_lines": mask.value(attempt.log_lines),
        "error_message": mask.text(attempt.error_message),
    }
    changes = {name: value for name, value in changes.items() if value != getattr(attempt, name)}
    if changes and is_applied:
        Attempt.objects.filter(pk=attempt.pk).update(**changes)
    return bool(changes)


def _redact_delivery(delivery: Delivery, mask: Mask, *, is_applied: bool) -> bool:
    message, detail = mask.text(delivery.error_message), mask.value(delivery.detail)
    if (message, detail) == (delivery.error_message, delivery.detail):
        return False
    if is_applied:
        # The old text is part of the condition, because a worker may have written a newer text meanwhile.
        Delivery.objects.filter(pk=delivery.pk, error_message=delivery.error_message).update(error_message=message, detail=detail)
    return True


def _exchange(exchange: Any, mask: Mask) -> Any:
    if not isinstance(exchange, dict):
        return mask.value(exchange)
    kept = mask.value({name: value for name, value in exchange.items() if name != "request_body"})
    # The order of the members may change: the column is `jsonb`, which does not preserve the order anyway.
    return {**kept, **({"request_body": _request_body(exchange["request_body"], mask)} if "request_body" in exchange else {})}


def _request_body(text: Any, mask: Mask) -> Any:
    if not isinstance(text, str):
        return mask.value(text)
    envelope = envelope_of(text.encode())
    if not envelope:
        # A truncated body is not valid JSON, so its members cannot be masked one by one.
        return REMOVED if '"options"' in text else mask.text(text)
    found = redaction_of(envelope)
    # All other members of the envelope stay unmasked, even if they contain the text of a removed secret.
    return encode_stored(found.envelope).decode() if found.removed else text
