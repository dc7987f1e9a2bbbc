"""Delivers an event to a webhook: one POST of the envelope, signed if configured. Any 2xx answer means that the webhook accepted the
event.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from foundation.outbound.outcomes import AddressRefused, Answer, OutboundError, TlsFailed, UrlRefused
from foundation.outbound.retry_after import retry_after
from foundation.outbound.session import outbound_session
from foundation.tracing import spans as tracing
from provisioning.runs.exchanges import ExchangeRecorder
from provisioning.runs.failures import ActionError, ConfigurationFailure, DataFailure, TransientFailure
from provisioning.runs.masking import Mask
from provisioning.webhooks.configuration import WebhookConfiguration, authorization_header
from provisioning.webhooks.signature import signature

USER_AGENT = "identity-webhooks/1.0"
_TRANSIENT = frozenset({408, 425, 429})
_REFUSES_ALL = frozenset({401, 403, 404, 405, 407, 410, 501})


@dataclass(frozen=True)
class WebhookOutcome:
    """The webhook accepted the event."""

    detail: dict[str, Any]
    status: str = "delivered"
    reason: str = "delivered"
    log_lines: list[dict[str, Any]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)


def post_event(webhook: WebhookConfiguration, *, event_id: str, body: bytes, deadline_seconds: float) -> WebhookOutcome:
    """Send the envelope `body`. Unless an answer with a status 2xx arrives in time, raise an `ActionError` with the masked exchange."""
    recorder = ExchangeRecorder(Mask(webhook.secrets.values()))
    try:
        return _posted(webhook, event_id, body, time.monotonic() + deadline_seconds, recorder)
    except ActionError as failure:
        failure.exchanges = recorder.documents()
        raise


def _posted(webhook: WebhookConfiguration, event_id: str, body: bytes, deadline: float, recorder: ExchangeRecorder) -> WebhookOutcome:
    url = str(webhook.shown["webhook_endpoint"])
    headers = _headers(webhook, event_id, body)
    # Omit the query string, which often contains tokens.
    exchange = recorder.begin("POST", urlsplit(url).path or "/", headers, body)
    started = time.monotonic()
    try:
        with tracing.inner_span("webhook POST", **{"http.request.method": "POST"}):
            answer = outbound_session().send("POST", url, headers=headers, body=body, deadline=deadline)
            tracing.note(**{"http.response.status_code": answer.status})
    except OutboundError as error:
        recorder.failed(exchange, str(error), _milliseconds_since(started))
        failure = ConfigurationFailure if isinstance(error, AddressRefused | TlsFailed | UrlRefused) else TransientFailure
        raise failure(f"POST got no answer: {error}") from None
    recorder.answered(exchange, answer.status, answer.headers, answer.body, _milliseconds_since(started))
    if not 200 <= answer.status < 300:
        raise _refusal(answer)
    return WebhookOutcome({"status": answer.status})


def _headers(webhook: WebhookConfiguration, event_id: str, body: bytes) -> dict[str, str]:
    name, value = authorization_header(webhook.shown["webhook_authorization"], webhook.secrets)
    headers = {
        "Accept-Encoding": "identity",
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": USER_AGENT,
        # The event id is the same in every attempt, so that receivers can detect duplicates.
        "webhook-id": event_id,
        name: value,
    }
    secret = webhook.secrets.get("signing_secret")
    if secret is not None:
        now = int(time.time())
        headers |= {"webhook-timestamp": str(now), "webhook-signature": signature(secret, message_id=event_id, timestamp=now, body=body)}
    return headers


def _refusal(answer: Answer) -> ActionError:
    text = f"POST answered {answer.status}"
    if answer.status in _REFUSES_ALL or answer.status < 400:
        return ConfigurationFailure(text, status=answer.status)
    if answer.status in _TRANSIENT or answer.status >= 500:
        return TransientFailure(text, status=answer.status, retry_after=retry_after(answer.headers, datetime.now(UTC)))
    return DataFailure(text, status=answer.status)


def _milliseconds_since(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 1)
