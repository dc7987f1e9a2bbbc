"""Checks the connection below HTTP: TLS version, certificate, and offered protocols."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime

from events.client.exchange import Exchange
from events.client.server import Server
from events.doctor.findings import Finding, fail, ok, skip, warn

_RENEWAL_DAYS = 14


def judge_transport(server: Server, stream: Exchange, now: datetime) -> Finding:
    """Return the finding about the connection of a response."""
    if not isinstance(stream.socket, ssl.SSLSocket):
        return _plain(server)
    version, cipher = stream.socket.version() or "?", (stream.socket.cipher() or ("?",))[0]
    certificate = stream.socket.getpeercert() or {}
    ends_at = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(certificate["notAfter"])), UTC)
    days = (ends_at - now).days
    facts = {"version": version, "cipher": cipher, "certificate_ends_at": ends_at.isoformat()}
    text = f"{version}, {cipher}, certificate valid for {days} more days"
    if version not in {"TLSv1.2", "TLSv1.3"}:
        return fail("TLS", text, "Offer TLS 1.2 and 1.3 only", **facts)
    if days < _RENEWAL_DAYS:
        return warn("TLS", text, "Renew the certificate", **facts)
    return ok("TLS", text, **facts)


def examine_http2(server: Server, connect_seconds: float) -> Finding:
    """Report whether the server offers HTTP/2. SDKs use HTTP/2, and some proxies buffer only with HTTP/1.1 or only with HTTP/2."""
    if server.scheme == "http":
        return skip("HTTP/2", "HTTP/2 requires TLS, and this URL is plain http")
    context = ssl.create_default_context(cafile=server.ca_file)
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        with socket.create_connection(server.address, timeout=connect_seconds) as plain:
            with context.wrap_socket(plain, server_hostname=server.host) as sock:
                chosen = sock.selected_alpn_protocol()
    except OSError as error:
        return warn("HTTP/2", f"the handshake that offers HTTP/2 failed: {type(error).__name__}", "Check the log of the proxy", alpn=None)
    if chosen == "h2":
        return ok("HTTP/2", "offered; the checks of this command use HTTP/1.1", alpn=chosen)
    return ok("HTTP/2", "not offered; HTTP/1.1 is enough for a stream", alpn=chosen)


def _plain(server: Server) -> Finding:
    if server.is_plain:
        return fail("TLS", "plain http: the network can read tokens", "Serve https only", version=None)
    return ok("TLS", "plain http, and only inside this machine", version=None)
