"""The ASGI server of the web processes and its command line; the only module that chooses the server."""

from __future__ import annotations

import sys

from config.launcher.options import ROOT, Options
from config.launcher.tls import ServerCertificate

_APPLICATION = "config.asgi:application"
_HOST = "127.0.0.1"
# The limit is high because each open stream counts as a request.
_MOST_REQUESTS = 20_000
# How long uvicorn waits for open connections when it stops; then it cuts them. The application closes its streams within
# EVENTS_DRAIN_SECONDS (8), so this time must be longer.
_DRAIN_SECONDS = 12
# Longer than the time for which a proxy keeps an idle connection (nginx: 60 s). Otherwise this server could close a connection just
# before the proxy uses the connection again.
_KEEP_ALIVE_SECONDS = 75


def command(options: Options, certificate: ServerCertificate | None) -> tuple[str, ...]:
    """Return the command line of the chosen server. The server listens only on loopback, and all its processes share the port."""
    build = {"uvicorn": _uvicorn, "daphne": _daphne}[options.web_server]
    return (sys.executable, "-m", *build(options, certificate))


def _uvicorn(options: Options, certificate: ServerCertificate | None) -> list[str]:
    arguments = ["uvicorn", "--host", _HOST, "--port", str(options.port), "--workers", str(options.web_processes), "--ws", "none"]
    arguments += ["--no-access-log", "--no-server-header", "--timeout-graceful-shutdown", str(_DRAIN_SECONDS), "--app-dir", str(ROOT)]
    # The application itself decides which proxies to trust.
    arguments += ["--no-proxy-headers", "--backlog", "4096", "--limit-concurrency", str(_MOST_REQUESTS)]
    arguments += ["--http", "config.http_protocol:HttpProtocol", "--timeout-keep-alive", str(_KEEP_ALIVE_SECONDS)]
    if certificate:
        arguments += ["--ssl-certfile", str(certificate.chain), "--ssl-keyfile", str(certificate.key)]
    return [*arguments, _APPLICATION]


def _daphne(options: Options, certificate: ServerCertificate | None) -> list[str]:
    endpoint = ["-b", _HOST, "-p", str(options.port)]
    if certificate:
        endpoint = ["-e", f"ssl:{options.port}:interface={_HOST}:privateKey={certificate.key}:certKey={certificate.chain}"]
    return ["daphne", *endpoint, "--verbosity", "0", _APPLICATION]
