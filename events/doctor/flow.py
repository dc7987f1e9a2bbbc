"""Checks the flow of bytes: an immediate opening, heartbeats in time, no compression that buffers, no early end of the connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from events.client.failures import Refused, StreamError, Unreachable, ended_by, printable
from events.client.parser import Message, Retry
from events.doctor.advice import BUFFERING, COMPRESSION, TIMEOUTS, to_do
from events.doctor.findings import Finding, fail, ok, skip, warn
from events.doctor.heads import between
from events.doctor.observing import Observation, Patient

_ENCODINGS = "gzip, deflate, br, zstd"
_PROMPT_SECONDS = 1.0
# Public client libraries time out after 60 s without a byte. A heartbeat within half of this time tolerates one lost heartbeat.
_LONGEST_SILENCE_SECONDS = 30.0
_BREATH_SECONDS = 0.5
# The default time limits of widely used servers, in seconds. If a connection ends after one of these times, the report names the server.
_KNOWN_LIMITS = {
    15: "envoy's default route timeout",
    30: "haproxy's customary timeout server, heroku",
    50: "haproxy's customary timeout client",
    60: "nginx's proxy_read_timeout, AWS load balancers",
    100: "Cloudflare",
    230: "Azure App Service",
    300: "Apache's ProxyTimeout, many gateways",
    350: "AWS network load balancers",
    600: "the idle limits of Google Cloud",
}


def examine_compression(patient: Patient, patience_seconds: float) -> Iterator[Finding]:
    """Offer every common encoding, as browsers do, and report whether the response uses an encoding. Raises `StreamError`."""
    try:
        stream = patient.ask(Accept_Encoding=_ENCODINGS)
    except Unreachable as error:
        yield held_back(patient, error, "compression", COMPRESSION)
        return
    with stream:
        if stream.status != 200:
            raise stream.refusal()
        encoding = printable(stream.header("Content-Encoding")).lower()
        if encoding in {"", "identity"}:
            yield ok("compression", "the client offered it, and the response does not use it", encoding=None)
            return
        observation = Observation(stream)
        came = observation.watch(patience_seconds, until=lambda seen: bool(seen.pieces))
        delay = f"the first bytes came after {observation.first_byte_seconds:.1f} s" if came else "no byte arrived in time"
        yield fail(
            "compression",
            f"Content-Encoding {encoding}: events wait in the compressor; {delay}",
            to_do(COMPRESSION, between(stream)),
            encoding=encoding,
            first_byte_seconds=observation.first_byte_seconds,
        )


def held_back(patient: Patient, error: StreamError, name: str, remedies: Mapping[str, str]) -> Finding:
    """Return the finding for a stream if the head of its response does not arrive, although error responses arrive.

    Raises `StreamError`.
    """
    what = "a response that may be compressed" if remedies is COMPRESSION else "the stream"
    text = f"error responses arrive at once, but {what} does not begin ({error}): a proxy waits for a full buffer"
    with patient.ask(with_token=False) as answer:
        return fail(name, text, to_do(remedies, between(answer)))


def judge_opening(observation: Observation, patience_seconds: float) -> Iterator[Finding]:
    """Check that the first bytes arrive without delay and contain `retry:` and a first offset."""
    came = observation.watch(patience_seconds, until=_has_offset)
    named = between(observation.stream)
    first = observation.first_byte_seconds
    if first is None:
        yield fail(
            "first byte",
            f"none within {patience_seconds:g} s of the headers: a proxy buffers the stream",
            to_do(BUFFERING, named),
            seconds=None,
        )
        return
    if first > _PROMPT_SECONDS:
        yield warn("first byte", f"{first:.1f} s after the headers", to_do(BUFFERING, named), seconds=first)
    else:
        yield ok("first byte", f"{first * 1000:.0f} ms after the headers", seconds=first)
    if not came:
        advice = "Every stream begins with :connected, retry: and an offset-only message; check what the service sends"
        yield fail("opening", f"no offset within {patience_seconds:g} s", advice, pieces=len(observation.pieces))
        return
    yield _judged_opening(observation, named)


def _judged_opening(observation: Observation, named: str) -> Finding:
    pieces, span = len(observation.pieces), observation.messages[0][0] - observation.pieces[0][0]
    retry = next((item.milliseconds for _, item in observation.items if isinstance(item, Retry)), None)
    facts = {"pieces": pieces, "span_seconds": span, "retry_ms": retry}
    text = f"arrived in {'1 piece' if pieces == 1 else f'{pieces} pieces within {span * 1000:.0f} ms'}, retry: {retry} ms"
    if span > _BREATH_SECONDS:
        return warn("opening", text, "The opening should arrive in one piece, at once: " + to_do(BUFFERING, named), **facts)
    if retry is None:
        return warn(
            "opening",
            text,
            "Without retry:, each client chooses its own pause before it reconnects: configure the service to send retry:",
            **facts,
        )
    return ok("opening", text, **facts)


def judge_heartbeat(observation: Observation, watch_seconds: float, tell: Callable[[str], None]) -> Finding:
    """Wait for the next bytes after the opening. On a stream without events, these bytes are a heartbeat."""
    before, since = len(observation.pieces), observation.age
    tell(f"  waiting up to {watch_seconds:g} s for a heartbeat")
    came = observation.watch(watch_seconds, until=lambda seen: len(seen.pieces) > before)
    named = between(observation.stream)
    if observation.ended not in {None, "silence"}:
        return _cut(observation, since)
    if not came:
        text = f"not one byte in {watch_seconds:g} s"
        advice = "Heartbeats come every 15 s by default (EVENTS_HEARTBEAT_SECONDS); watch longer with --watch, or "
        return fail("heartbeat", text, advice + to_do(BUFFERING, named), seconds=None)
    seconds = observation.pieces[before][0] - observation.pieces[before - 1][0]
    if seconds > _LONGEST_SILENCE_SECONDS:
        advice = "A client with a read timeout of 60 s may disconnect if one heartbeat is lost: lower EVENTS_HEARTBEAT_SECONDS"
        return warn("heartbeat", f"after {seconds:.1f} s of silence", advice, seconds=seconds)
    return ok("heartbeat", f"after {seconds:.1f} s of silence", seconds=seconds)


def judge_long_life(observation: Observation, minutes: float | None, tell: Callable[[str], None]) -> Finding:
    """Keep the connection open and report what ends it: the service as planned, or a proxy."""
    if minutes is None:
        return skip("long life", "not watched; --idle MINUTES keeps a stream open for that time")
    if observation.ended is not None:
        return skip("long life", f"not watched: the connection had already ended ({observation.ended})")
    since = observation.age
    tell(f"  keeping the stream open for {minutes:g} minutes")
    observation.watch(minutes * 60, until=lambda _: False, tell=tell)
    if observation.ended not in {None, "silence"}:
        return _cut(observation, since, name="long life")
    silence = observation.longest_silence
    text = f"open for {observation.age / 60:.1f} minutes, longest silence {silence:.1f} s"
    if silence > _LONGEST_SILENCE_SECONDS:
        return fail("long life", text, to_do(BUFFERING, between(observation.stream)), longest_silence_seconds=silence)
    return ok("long life", text, longest_silence_seconds=silence)


def _cut(observation: Observation, since: float, *, name: str = "heartbeat") -> Finding:
    last = observation.messages[-1][1] if observation.messages else None
    age = observation.age
    if isinstance(last, Message) and last.event == "error":
        ended = ended_by(last.data)
        if ended.is_planned:
            return ok(name, f"the service ended the stream as planned after {age:.1f} s: {ended}", seconds=age)
        return fail(name, f"the service ended the stream: {ended}", "See the log of the service", seconds=age)
    likely = next((f" ({who}?)" for limit, who in _KNOWN_LIMITS.items() if abs(age - limit) <= max(1.0, limit * 0.02)), "")
    text = f"cut after {age:.1f} s{likely}, without an error message from the service: {observation.ended}"
    return fail(name, text, to_do(TIMEOUTS, between(observation.stream)), seconds=age, watched_since=since)


def _has_offset(observation: Observation) -> bool:
    return bool(observation.messages)


def describe_refusal(error: Refused) -> Finding:
    """Return the finding for a stream that the service refused."""
    if error.code == "connection_limit":
        advice = "Close other streams of the tenant, or wait until slots of dead connections have expired, and run again"
        return fail("stream", str(error), advice, status=error.status)
    advice = "The client needs a token with the scope read:events for the audience of this address"
    return fail("stream", str(error), advice, status=error.status)
