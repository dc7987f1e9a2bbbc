"""The cost of traces: updates of users with traces on and off, measured alternately in one process on one connection.

Run with `.venv/bin/python -m benchmarks.traces [rounds]` against a migrated database (`DATABASE_URL`). Each update is made inside the span
of a request, and the event of the update then gets a position. While traces are on, every update has a trace, and the spans are sent to a
collector in another process. Prints medians; creates a tenant and does not delete it.
"""

from __future__ import annotations

import os
import secrets
import statistics
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.development")

_UPDATES = 100


class Collector(BaseHTTPRequestHandler):
    """Accepts every export."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Read the spans, and answer 200."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""


def collect() -> None:
    """Run a collector on a free port, and print the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    print(server.server_port, flush=True)
    server.serve_forever()


def main(rounds: int) -> None:
    """Measure and print."""
    with subprocess.Popen([sys.executable, "-m", "benchmarks.traces", "collect"], stdout=subprocess.PIPE, text=True) as collector:
        assert collector.stdout is not None
        os.environ["TRACING_ENDPOINT"] = f"http://127.0.0.1:{collector.stdout.readline().strip()}/v1/traces"
        try:
            _measure(rounds)
        finally:
            collector.kill()


def _measure(rounds: int) -> None:
    import django  # noqa: PLC0415  (reads TRACING_ENDPOINT)

    django.setup()
    from events.log.numbering import number_tenant  # noqa: PLC0415
    from foundation.tracing import spans  # noqa: PLC0415
    from identity.services import connections, tenants, users  # noqa: PLC0415

    tenant_id = f"bench-{secrets.token_hex(6)}"
    tenants.create_tenant(tenant_id=tenant_id, name="bench", host=f"{tenant_id}.example.test")
    people = connections.create_connection(tenant_id=tenant_id, name="people", strategy="database")
    user = users.create_user(tenant_id=tenant_id, connection=people, email="ada@example.test", app_metadata={"plan": "x" * 400})

    def update() -> None:
        with spans.request_span("PATCH users", parent=None, link=None):
            users.update_user(tenant_id=tenant_id, user_id=user.user_id, changes={"nickname": secrets.token_hex(8)})
        number_tenant(tenant_id)

    def updates() -> tuple[float, float]:
        """Return the seconds of an update, and its seconds of processor time in this process."""
        began, used = time.perf_counter(), time.process_time()
        for _ in range(_UPDATES):
            update()
        return (time.perf_counter() - began) / _UPDATES, (time.process_time() - used) / _UPDATES

    updates()
    off, on = [], []
    for _ in range(rounds):
        off.append(updates())
        spans.start()
        on.append(updates())
        spans.stop()
    _report(off, on)


def _report(off: list[tuple[float, float]], on: list[tuple[float, float]]) -> None:
    for name, number in (("elapsed", 0), ("processor", 1)):
        without, traced = (statistics.median(each[number] for each in found) for found in (off, on))
        ratio = statistics.median(two[number] / one[number] for one, two in zip(off, on, strict=True))
        print(
            f"{name:9}  off {without * 1000:.2f} ms ({1 / without:.0f} updates/s), on {traced * 1000:.2f} ms ({1 / traced:.0f} updates/s), "
            f"difference {(traced - without) * 1000:.2f} ms, ratio {ratio:.2f}, {len(off)} rounds of {_UPDATES}"
        )


if __name__ == "__main__":
    collect() if sys.argv[1:] == ["collect"] else main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
