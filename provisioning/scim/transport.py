"""Sends SCIM requests: sets headers and a timeout, repeats a request within the budget of the run, and records each try."""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import orjson

from foundation.outbound.outcomes import AddressRefused, Answer, AnswerTooLarge, OutboundError, TlsFailed, UrlRefused
from foundation.tracing import spans as tracing
from provisioning.mapping.schemas import MEDIA_TYPE
from provisioning.runs.exchanges import Exchange, ExchangeRecorder
from provisioning.runs.failures import ActionError, ConfigurationFailure, DataFailure, InvalidResponseShape, TransientFailure
from provisioning.runs.masking import Mask
from provisioning.scim.refusals import is_repeated_within_run, refusal
from provisioning.scim.settings import ScimSettings, longest_pause_ms

USER_AGENT = "identity-provisioning/1.0"
# If less time is left, do not repeat: the repeat would time out, and would hide the more informative failure of the first try.
_SHORTEST_TRY_SECONDS = 0.05


class Sender(Protocol):
    """The part of `foundation.outbound.session.OutboundSession` that the transport uses."""

    def send(self, method: str, url: str, *, headers: dict[str, str], body: bytes | None, deadline: float) -> Answer: ...


@dataclass(frozen=True)
class Request:
    """A request relative to the base URL, which is a secret.

    `label` is the path without ids or personal data, for messages; `shown_path` is the path in the stored exchange.
    """

    verb: str
    path: str
    label: str
    shown_path: str
    body: dict[str, Any] | None = None
    # The ETag for `If-Match` (RFC 7644, 3.14); empty if the request has no condition.
    if_match: str = ""


@dataclass
class _Try:
    """A failed try: whether the request may be repeated, and whether the server may have processed the request."""

    failure: ActionError
    is_repeatable: bool = False
    may_have_arrived: bool = False


class Pacing(Protocol):
    """Limits the rate of requests; see `provisioning.actions.pace`."""

    def take(self, verb: str, seconds_left: float) -> None: ...

    def rest(self, seconds: float | None) -> None: ...


class ScimTransport:
    """The requests of one run of an action against one server; `deadline` is a reading of `time.monotonic`."""

    def __init__(
        self,
        sender: Sender,
        settings: ScimSettings,
        recorder: ExchangeRecorder,
        *,
        mask: Mask,
        deadline: float,
        correlation_id: str = "",
        pace: Pacing | None = None,
    ) -> None:
        self._sender = sender
        self._settings = settings
        self._recorder = recorder
        self._mask = mask
        self._deadline = deadline
        self._pace = pace
        self._correlation_id = "".join(re.findall(r"[!-~]", correlation_id))[:128]

    @property
    def server(self) -> str:
        """Return a short digest of the base URL. The names of the stored capabilities of this server contain the digest."""
        return hashlib.sha256(self._settings.base_url.encode()).hexdigest()[:12]

    def send(self, request: Request, *, before_uncertain_repeat: Callable[[], None] | None = None) -> Answer:
        """Return a 2xx answer. Repeats on 429, 5xx and network errors, at most `SCIM_MAX_RETRIES` times within the budget.

        `before_uncertain_repeat` runs before the repeat of a request that the server may have processed; the function may raise an
        exception to prevent the repeat. Raises the failure of the last try, with the delay from `Retry-After`. `is_uncertain` of the
        failure tells whether the server may have processed one of the tries.
        """
        body = encoded(request.body)
        repeats, is_uncertain = 0, False
        try:
            while True:
                outcome = self._try(request, body)
                if isinstance(outcome, Answer):
                    return outcome
                repeats += 1
                is_uncertain = is_uncertain or outcome.may_have_arrived
                if not outcome.is_repeatable or repeats > self._settings.max_retries or not self._pause(repeats, outcome.failure):
                    raise outcome.failure
                if outcome.may_have_arrived and before_uncertain_repeat is not None:
                    before_uncertain_repeat()
        except ActionError as failure:
            # The failure may come from `before_uncertain_repeat` or from the rate limit, and not from a try. But an earlier try may have
            # reached the server.
            failure.is_uncertain = is_uncertain
            raise

    def _try(self, request: Request, body: bytes | None) -> Answer | _Try:
        if self._remaining() <= 0:
            return _Try(TransientFailure(f"{request.verb} {request.label} was not sent: the run has no time left"))
        if self._pace is not None:
            self._pace.take(request.verb, self._remaining() - _SHORTEST_TRY_SECONDS)
        headers = self._headers(has_body=body is not None) | ({"If-Match": request.if_match} if request.if_match else {})
        exchange = self._recorder.begin(request.verb, request.shown_path, headers, body)
        started = time.monotonic()
        deadline = min(started + self._settings.timeout_ms / 1000, self._deadline)
        try:
            answer = self._sent(request, headers, body, deadline)
        except OutboundError as error:
            return self._unanswered(request, exchange, error, _milliseconds_since(started))
        self._recorder.answered(exchange, answer.status, answer.headers, answer.body, _milliseconds_since(started))
        if 200 <= answer.status < 300:
            return answer
        label = f"{request.verb} {request.label}"
        failure = refusal(label, answer.status, answer.headers, answer.body, mask=self._mask, now=datetime.now(UTC))
        if self._pace is not None:
            self._pace.rest(failure.retry_after)
        # 429 and 503 mean that the request was not processed. A server may answer any other 5xx although the write was successful.
        is_uncertain = answer.status >= 500 and answer.status != 503
        return _Try(failure, is_repeatable=is_repeated_within_run(answer.status), may_have_arrived=is_uncertain)

    def _sent(self, request: Request, headers: dict[str, str], body: bytes | None, deadline: float) -> Answer:
        url = self._settings.base_url + request.path
        if not tracing.is_on():
            return self._sender.send(request.verb, url, headers=headers, body=body, deadline=deadline)
        with tracing.inner_span(f"SCIM {request.verb} {request.label}", **{"http.request.method": request.verb}):
            answer = self._sender.send(request.verb, url, headers=headers, body=body, deadline=deadline)
            tracing.note(**{"http.response.status_code": answer.status})
            return answer

    def _unanswered(self, request: Request, exchange: Exchange, error: OutboundError, duration_ms: float) -> _Try:
        self._recorder.failed(exchange, str(error), duration_ms)
        text = f"{request.verb} {request.label} got no answer: {error}"
        if isinstance(error, AnswerTooLarge):
            return _Try(InvalidResponseShape(f"invalid response shape: {request.verb} {request.label}: {error}"), may_have_arrived=True)
        if isinstance(error, AddressRefused | TlsFailed | UrlRefused):
            return _Try(ConfigurationFailure(text))
        return _Try(TransientFailure(text), is_repeatable=True, may_have_arrived=error.may_have_arrived)

    def _pause(self, repeat: int, failure: ActionError) -> bool:
        """Wait before a repeat and return True. Return False if the budget is too small for the pause and another try."""
        longest = longest_pause_ms(repeat) / 1000
        # The pause is random: otherwise all workers that an outage has affected would repeat their requests at the same time.
        seconds = failure.retry_after or random.uniform(longest / 2, longest)  # noqa: S311  (no secret)
        if self._remaining() - seconds < _SHORTEST_TRY_SECONDS:
            return False
        time.sleep(seconds)
        return True

    def _remaining(self) -> float:
        return self._deadline - time.monotonic()

    def _headers(self, *, has_body: bool) -> dict[str, str]:
        headers = {
            "Accept": MEDIA_TYPE,
            # Request uncompressed answers, as a protection against decompression bombs. The size of a compressed answer is limited, too.
            "Accept-Encoding": "identity",
            "Authorization": f"Bearer {self._settings.bearer_token}",
            "User-Agent": USER_AGENT,
        }
        if has_body:
            headers["Content-Type"] = MEDIA_TYPE
        if self._correlation_id:
            headers["X-Correlation-ID"] = self._correlation_id
        return headers


def encoded(body: dict[str, Any] | None) -> bytes | None:
    """Return the body as UTF-8 JSON; None if there is no body. Raises `DataFailure` if the body cannot be encoded."""
    if body is None:
        return None
    try:
        return orjson.dumps(body)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise DataFailure("the mapped user cannot be encoded as JSON") from error


def _milliseconds_since(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 1)
