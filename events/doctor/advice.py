"""Configuration advice for the proxy between client and service: for a named proxy, or for all known proxies. Pure."""

from __future__ import annotations

from collections.abc import Mapping

_ELSEWHERE = (
    "Run again with --connect-to and the IP address of the service, to bypass the proxy. If the problem is still reported, the proxy is "
    "not its cause."
)

BUFFERING = {
    "nginx": "in the location of the stream: proxy_buffering off; (or no proxy_ignore_headers X-Accel-Buffering), and gzip off;",
    "caddy": "in reverse_proxy: flush_interval -1, and no encode for this path",
    "haproxy": "remove option http-buffer-request and compression for this backend",
    "envoy": "remove the buffer and compressor filters from this route",
    "apache": "ProxyPass ... flushpackets=on, and SetEnv no-gzip 1 for this path",
    "traefik": "remove the buffering and compress middlewares from this router",
}
COMPRESSION = {
    "nginx": "gzip off; (and brotli off;) in the location of the stream, or take text/event-stream out of gzip_types",
    "caddy": "exclude the path of the stream from encode",
    "haproxy": "leave text/event-stream out of compression type",
    "envoy": "leave text/event-stream out of the compressor's content_type",
    "apache": "SetEnv no-gzip 1 for this path",
    "traefik": "excludedContentTypes = text/event-stream in the compress middleware",
}
TIMEOUTS = {
    "nginx": "proxy_read_timeout 1h; and send_timeout above the heartbeat interval",
    "caddy": "no read_timeout, write_timeout or stream_timeout below the lifetime of a stream",
    "haproxy": "timeout server 1h and timeout client 1h (timeout tunnel applies only to upgraded connections)",
    "envoy": "timeout: 0s on the route (the default ends every response after 15 s) and a long stream_idle_timeout",
    "apache": "ProxyTimeout 3600 and no mod_reqtimeout limit on the body of this path",
    "traefik": "respondingTimeouts.writeTimeout = 0 and idleTimeout above the heartbeat interval",
}
HTTP_1_0 = {
    "nginx": "proxy_http_version 1.1; and proxy_set_header Connection '';",
    "apache": "remove SetEnv proxy-nokeepalive and force-proxy-request-1.0",
}
HEADERS = {
    "nginx": "no expires and no add_header Cache-Control in the location of the stream",
    "apache": "no ExpiresByType and no Header set Cache-Control for this path",
}
DISCONNECTS = {
    "nginx": "proxy_ignore_client_abort off; (the default)",
    "haproxy": "option abortonclose",
}


def to_do(remedies: Mapping[str, str], between: str) -> str:
    """If the headers in `between` show a known proxy, return the remedy for this proxy; otherwise return all remedies."""
    lowered = between.lower()
    for name, remedy in remedies.items():
        if name in lowered:
            return f"{name}: {remedy}. {_ELSEWHERE}"
    return "; ".join(f"{name}: {remedy}" for name, remedy in remedies.items()) + f". {_ELSEWHERE}"
