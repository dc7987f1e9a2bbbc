"""Which ASGI server runs the web processes, and how: the one place where that is decided."""

from __future__ import annotations

import sys

from config.launcher.options import ROOT, Options
from config.launcher.tls import ServerCertificate

_APPLICATION = "config.asgi:application"
_HOST = "127.0.0.1"
# One slot per open stream.
_MOST_REQUESTS = 20_000
# Open streams are closed by the application within EVENTS_DRAIN_SECONDS (8); what still hangs then is cut.
_DRAIN_SECONDS = 12
# Longer than a proxy in front keeps an idle connection (nginx: 60), so that none is closed just as it is used again.
_KEEP_ALIVE_SECONDS = 75


def command(options: Options, certificate: ServerCertificate | None) -> tuple[str, ...]:
    """Return the command line of the chosen server: loopback only, the port shared by all processes."""
    build = {"uvicorn": _uvicorn, "daphne": _daphne}[options.web_server]
    return (sys.executable, "-m", *build(options, certificate))


def _uvicorn(options: Options, certificate: ServerCertificate | None) -> list[str]:
    arguments = ["uvicorn", "--host", _HOST, "--port", str(options.port), "--workers", str(options.web_processes), "--ws", "none"]
    arguments += ["--no-access-log", "--no-server-header", "--timeout-graceful-shutdown", str(_DRAIN_SECONDS), "--app-dir", str(ROOT)]
    # The application itself decides which proxies are believed.
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
