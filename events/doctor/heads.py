"""Checks the response head of a stream for headers that make servers and proxies buffer, store or change the body."""

from __future__ import annotations

from collections.abc import Iterator

from events.client.exchange import Exchange
from events.client.failures import printable
from events.doctor.advice import BUFFERING, HEADERS, HTTP_1_0, to_do
from events.doctor.findings import Finding, fail, ok, warn

_SLOW_HEADERS_SECONDS = 2.0
_STORES = ("age", "x-cache", "cf-cache-status", "x-cache-status", "x-varnish")


def between(answer: Exchange) -> str:
    """Return the headers `Server` and `Via` of the response, which contain the names of proxies."""
    return printable(" ".join(filter(None, (answer.header("Server"), answer.header("Via")))))


def judge_head(answer: Exchange) -> Iterator[Finding]:
    """Yield the findings about the head of a 200 response."""
    yield _headers(answer)
    yield _version(answer)
    yield _content_type(answer)
    yield _cache(answer)
    yield _accel_buffering(answer)


def _headers(answer: Exchange) -> Finding:
    seconds = answer.headers_at - answer.sent_at
    named = between(answer)
    text = f"after {seconds * 1000:.0f} ms{f', from {named}' if named else ''}"
    if seconds > _SLOW_HEADERS_SECONDS:
        return warn("headers", text, "Find the proxy that delays the headers: " + to_do(BUFFERING, named), seconds=seconds, server=named)
    return ok("headers", text, seconds=seconds, server=named)


def _version(answer: Exchange) -> Finding:
    length = answer.header("Content-Length")
    if length:
        return fail(
            "framing", f"Content-Length {printable(length)}: a proxy collected the whole response first", to_do(BUFFERING, between(answer))
        )
    if answer.answer.version < 11:
        return warn(
            "framing",
            "HTTP/1.0: a client cannot distinguish a planned end from a broken connection",
            to_do(HTTP_1_0, between(answer)),
            version=10,
        )
    framing = "chunked" if answer.answer.chunked else "until the connection is closed"
    if answer.answer.chunked:
        return ok("framing", f"HTTP/1.1, {framing}", version=11, framing=framing)
    advice = "Serve the stream chunked, so that a client can distinguish a normal end from a broken connection"
    return warn("framing", f"HTTP/1.1, {framing}", advice, version=11, framing=framing)


def _content_type(answer: Exchange) -> Finding:
    value = printable(answer.header("Content-Type"))
    kind, _, parameters = value.partition(";")
    advice = "Forward the header Content-Type of the service unchanged"
    if kind.strip().lower() != "text/event-stream":
        return fail("content type", value or "none", advice, value=value)
    if "charset" in parameters.lower() and "utf-8" not in parameters.lower():
        return fail("content type", f"{value}: event streams are UTF-8", advice, value=value)
    return ok("content type", value, value=value)


def _cache(answer: Exchange) -> Finding:
    value = printable(answer.header("Cache-Control"))
    named = between(answer)
    stored = {name: printable(answer.header(name)) for name in _STORES if answer.header(name)}
    directives = {part.strip().lower() for part in value.split(",")}
    facts = {"cache_control": value, "cache_headers": stored}
    if "hit" in " ".join(stored.values()).lower() or stored.get("age", "0") not in {"", "0"}:
        return fail("cache", f"the response came from a cache: {stored}", "Exclude this path from the cache", **facts)
    if not directives & {"no-store", "no-cache"}:
        return fail("cache", f"Cache-Control {value or 'is missing'}: a cache may keep the stream", to_do(HEADERS, named), **facts)
    if "no-transform" not in directives:
        return warn("cache", f"Cache-Control {value} without no-transform: a proxy may compress", to_do(HEADERS, named), **facts)
    return ok("cache", value, **facts)


def _accel_buffering(answer: Exchange) -> Finding:
    value = printable(answer.header("X-Accel-Buffering"))
    if value.lower() == "yes":
        return fail("X-Accel-Buffering", "yes tells nginx to buffer", "Send X-Accel-Buffering: no, or do not send the header", value=value)
    if value:
        return ok("X-Accel-Buffering", f"{value} arrived, so no proxy removed the header", value=value)
    return ok("X-Accel-Buffering", "absent: nginx consumes the header that the service sends", value=None)
