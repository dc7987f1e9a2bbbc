"""`manage.py events doctor`: find out whether a server between service and client buffers, compresses, caches or cuts a stream."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser, OutputWrapper

from events.client.credentials import masked
from events.client.exchange import Deadlines
from events.client.failures import StreamError
from events.client.options import CREDENTIALS_HELP, InvalidOptions, access_of, add_access_arguments
from events.client.output import Notes, wants_colour
from events.doctor.examination import Plan, examine
from events.doctor.findings import Finding, Verdict, worst
from events.doctor.observing import Patient

_COLOURS = {"ok": "\x1b[32m", "warn": "\x1b[33m", "FAIL": "\x1b[31m", "skip": "\x1b[2m"}
_RESET = "\x1b[0m"

HELP = f"""Find out whether a server between a service and its clients buffers, compresses, caches or cuts a stream.

The command acts as a client and prints one line per check: ok, warn or FAIL, the finding, and what to change. It
writes no event. It opens one stream at a time; with --slots, it opens as many streams as the tenant may have.

Checks
  error answers       401 and 400 arrive with the service's JSON; Last-Event-ID reaches the service
  compression         the doctor offers gzip, deflate, br and zstd; a server that compresses the stream delays events
  TLS, HTTP/2         the TLS version, the certificate, the offered protocols
  headers, framing    delay of the headers, HTTP version, chunked encoding; content type, cache headers,
                      X-Accel-Buffering
  first byte, opening the first bytes arrive at once and together; otherwise a server buffers
  heartbeat           a heartbeat arrives within --watch seconds
  canary              with --canary: a test event arrives at once. The service does not store it, and sends it to
                      every open stream of the same client
  long life           with --idle MINUTES: which server ends the connection, and when
  slots               with --slots: whether the service notices that clients have disconnected

Examples
  manage.py events doctor https://id.example.com                              through the proxy, like clients
  manage.py events doctor https://id.example.com --connect-to 10.0.0.7:8000   bypass the proxy to test the service itself
  manage.py events doctor https://id.example.com --canary --idle 15 --slots   before going live
  manage.py events doctor https://id.example.com --json | jq '.findings[] | select(.verdict != "ok")'

{CREDENTIALS_HELP}

Exit status
  0  every check passed
  1  at least one warn, no FAIL
  2  at least one FAIL, or an invalid command line"""


def add_arguments(parser: CommandParser) -> None:
    add_access_arguments(parser)
    parser.set_defaults(read_timeout=10.0)
    what = parser.add_argument_group("what to examine")
    what.add_argument("--watch", type=_positive, default=20.0, metavar="SECONDS", help="heartbeat timeout (20)")
    what.add_argument("--idle", type=_positive, metavar="MINUTES", help="keep the stream open this long")
    what.add_argument("--canary", action="store_true", help="request a test event and measure its latency")
    what.add_argument(
        "--slots", action="store_true", help="open streams up to the tenant's limit, close them, and check that their slots become free"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of lines")


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> int:
    try:
        access = access_of(options, os.environ, settings.DATA_DIR / "up.json")
    except (InvalidOptions, StreamError) as error:
        raise CommandError(str(error), returncode=Verdict.FAIL) from error
    patient = Patient(access.server, access.credentials, Deadlines(options["connect_timeout"], options["read_timeout"]))
    plan = Plan(options["watch"], options["idle"], with_canary=options["canary"], with_slots=options["slots"])
    notes = Notes(stderr, access.credentials, is_verbose=sys.stderr.isatty() or options["idle"] is not None)
    is_coloured = wants_colour(stdout, os.environ, forced=options["force_color"], refused=options["no_color"])
    found: list[Finding] = []
    try:
        for finding in examine(patient, plan, notes.detail):
            found.append(finding)
            if not options["json"]:
                stdout.write(masked(_line(finding, is_coloured=is_coloured), access.credentials))
                stdout.flush()
    except KeyboardInterrupt:
        notes.say("stopped before the last check")
        return int(Verdict.FAIL)
    if options["json"]:
        document = {
            "url": access.server.events_url,
            "verdict": worst(found).name.lower(),
            "findings": [finding.document() for finding in found],
        }
        stdout.write(masked(json.dumps(document, indent=2), access.credentials))
    return int(worst(found))


def _line(finding: Finding, *, is_coloured: bool) -> str:
    line = finding.line()
    return f"{_COLOURS[finding.word]}{line[:4]}{_RESET}{line[4:]}" if is_coloured else line


def _positive(text: str) -> float:
    if not 0 < (number := float(text)) <= 1_000_000:
        raise argparse.ArgumentTypeError("more than 0")
    return number
