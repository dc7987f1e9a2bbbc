"""`manage.py events tail`: follow the event stream of a service over HTTP, like any client."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser, OutputWrapper

from events.client.account import Account
from events.client.failures import Ended, Refused, Remedy, StreamError, Untrusted, printable
from events.client.moments import InvalidMoment, wire_moment
from events.client.options import (
    CREDENTIALS_HELP,
    Access,
    InvalidOptions,
    access_of,
    add_access_arguments,
    deadlines_of,
)
from events.client.output import Notes, Output, discard_rest, is_event, wants_colour
from events.client.parser import Comment, Item, Message
from events.client.state_file import StateFile, UnusableState
from events.client.stopping import Stopped, Stopping
from events.client.subscription import Closed, Drained, Endurance, Happening, Opened, Subscription, Wanted
from events.record.catalogue import EVENT_TYPES

_RESYNCHRONIZE = (
    "the events between this cursor and the oldest stored event were deleted: read the resources again from the management",
    "interface, or export the users (manage.py export_users also prints the cursor with which you resume)",
)
UNUSABLE, REFUSED, EXPIRED, UNREACHABLE = 2, 3, 4, 5

HELP = f"""Follow the event stream of a service, and reconnect when the connection ends.

The command reads over HTTP, so it shows what clients receive. It prints events to standard output, and all other
lines to standard error. After a connection ends, the next connection starts at the last offset in the output: no
event is lost or repeated. At the end the command prints totals, and the command line that resumes the stream.

Examples
  manage.py events tail                                     the service that `make up` runs here
  manage.py events tail --type 'user.*' --since 2h          events of users in the last two hours, and new ones
  manage.py events tail --json | jq .event.data.object      one message per line, exactly the received bytes
  manage.py events tail --json --max 1 --since 1d | head    the first event of the last day
  manage.py events tail https://id.example.com --state tail.state
                                                            store the offset in a file, to resume even after kill -9
  manage.py events tail https://id.example.com --connect-to 10.0.0.7:8000
                                                            connect to one server directly, without the proxy

{CREDENTIALS_HELP}

Exit status
  0    --max was reached; with --once, the stream ended as planned; or the program that reads the output closed the pipe
  2    the command line is invalid, or the state file cannot be used
  3    the service refused: no permission, unknown host, invalid cursor
  4    the events after the cursor were pruned; the output says what to do
  5    with --once: no connection, or a broken connection; otherwise: no connection for the time in --give-up-after;
       always: a certificate that does not verify
  130  stopped by Ctrl+C
  143  stopped by SIGTERM"""


def add_arguments(parser: CommandParser) -> None:
    add_access_arguments(parser)
    what = parser.add_argument_group("what to read")
    what.add_argument(
        "--type",
        action="append",
        default=[],
        dest="types",
        metavar="TYPE",
        help="only events of this type; repeatable; 'user.*' for every type of event about users",
    )
    start = what.add_mutually_exclusive_group()
    start.add_argument("--from", dest="cursor", metavar="CURSOR", help="resume after this offset")
    start.add_argument("--since", metavar="TIME", help="start at this time: 90s, 10m, 2h, 7d, or 2026-05-01T12:00:00Z")
    what.add_argument("--max", type=_positive, dest="limit", metavar="N", help="stop after N events")
    what.add_argument(
        "--state", type=Path, metavar="FILE", help="store the offset in FILE; an existing file takes precedence over --from and --since"
    )
    how = parser.add_argument_group("how to print events")
    form = how.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_const", const="json", dest="form", help="one message per line, exactly the received bytes")
    form.add_argument("--raw", action="store_const", const="raw", dest="form", help="every byte of the stream")
    how.add_argument("--verbose", action="store_true", help="also show heartbeats, lag, connections and waits, on standard error")
    ends = parser.add_argument_group("when to stop")
    ends.add_argument("--once", action="store_true", help="do not reconnect")
    ends.add_argument("--give-up-after", type=float, metavar="SECONDS", help="stop after this time without a connection (default: never)")


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> int:
    try:
        access = access_of(options, os.environ, settings.DATA_DIR / "up.json")
        wanted = Wanted(chosen_types(options["types"]), options["cursor"], _timestamp(options["since"]))
    except (InvalidOptions, InvalidMoment) as error:
        raise CommandError(str(error), returncode=UNUSABLE) from error
    except StreamError as error:
        raise CommandError(str(error), returncode=UNREACHABLE) from error
    is_coloured = wants_colour(stdout, os.environ, forced=options["force_color"], refused=options["no_color"])
    output = Output(stdout, form=options["form"] or "lines", is_coloured=is_coloured)
    notes = Notes(stderr, access.credentials, is_verbose=options["verbose"])
    return Tail(options, access, wanted, output, notes).run(stdout)


class Tail:
    """One run of the command."""

    def __init__(self, options: Mapping[str, Any], access: Access, wanted: Wanted, output: Output, notes: Notes) -> None:
        self._options = options
        self._access = access
        self._wanted = wanted
        self._output = output
        self._notes = notes
        self._state = StateFile(options["state"], access.server.events_url) if options["state"] else None
        self._account = Account(time.monotonic())

    def run(self, stdout: OutputWrapper) -> int:
        """Read until the run ends; return the exit status."""
        try:
            status = self._judged()
        except BrokenPipeError:
            # The process that reads the pipe has exited, for example `| head`.
            discard_rest(stdout)
            return 0
        command = resume_command(self._options, self._account.offset)
        self._notes.say(self._account.summary(now=time.monotonic(), command=command))
        return status

    def _judged(self) -> int:
        try:
            with Stopping() as stopping:
                try:
                    self._read(stopping)
                finally:
                    self._settle()
        except Stopped as stopped:
            return stopped.exit_status
        except StreamError as error:
            self._notes.say(self._explained(error))
            return _status_of(error)
        return 0

    def _read(self, stopping: Stopping) -> None:
        offset = self._state.read() if self._state else None
        self._account.offset = offset
        subscription = Subscription(
            self._access.server,
            self._access.credentials,
            self._wanted,
            offset=offset,
            deadlines=deadlines_of(self._options),
            endurance=Endurance(is_once=self._options["once"], give_up_seconds=self._options["give_up_after"]),
        )
        happenings = subscription.happenings()
        while True:
            with stopping.interruptible:
                happening = next(happenings, None)
            if happening is None:
                return
            self._take(happening)
            if self._account.events == self._options["limit"]:
                return
            stopping.check()

    def _take(self, happening: Happening) -> None:
        match happening:
            case Opened(number=number):
                self._account.connections = number
                self._notes.detail(f"connected to {self._access.server.events_url} (connection {number})")
            case Drained():
                self._settle()
            case Closed(error, pause):
                words = f"{error or 'the server closed the connection normally'}; next try in {pause:.1f} s"
                (self._notes.say if error else self._notes.detail)(words)
            case _:
                self._take_item(happening)

    def _take_item(self, item: Item) -> None:
        self._output.take(item)
        match item:
            case Comment(text):
                self._notes.detail(f"comment: {printable(text)}")
            case Message("offset-only", id=offset):
                self._notes.detail(f"heartbeat: {printable(offset)}")
            case Message(event=name) if is_event(item):
                self._account.types[printable(name)] += 1
        # The next run starts at the last offset in the output.
        self._account.offset = getattr(item, "id", "") or self._account.offset

    def _settle(self) -> None:
        """Flush the output, then store its last offset. If the process is killed between the two, events are repeated, but none is lost."""
        self._output.flush()
        if self._state and self._account.offset:
            self._state.write(self._account.offset)

    def _explained(self, error: StreamError) -> str:
        """Return the lines about an error.

        For an expired cursor, they contain the command that reads the remaining events, if the service names the earliest cursor.
        """
        if _status_of(error) != EXPIRED:
            return f"stopped: {error}"
        document = error.document if isinstance(error, Refused) else {}
        lines = [f"stopped: {error}", *_RESYNCHRONIZE]
        if document.get("earliest_time"):
            lines.append(f"the oldest stored event was recorded at {printable(str(document['earliest_time']))}")
        if document.get("earliest_offset"):
            command = resume_command({**self._options, "state": None}, printable(str(document["earliest_offset"])))
            lines.append(f"to read the remaining events: {shlex.join(command)}")
        if self._options["state"]:
            lines.append(f"the state file still contains the expired cursor: remove {self._options['state']} to start again")
        return "\n".join(lines)


def chosen_types(wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the event types that match the given names and patterns. For an unknown name, raises `InvalidOptions` with a list of similar
    names."""
    chosen: dict[str, None] = {}
    complaints = []
    for name in wanted:
        found = [known for known in EVENT_TYPES if fnmatchcase(known, name)]
        chosen |= dict.fromkeys(found)
        if not found:
            near = get_close_matches(name, EVENT_TYPES, n=3, cutoff=0.5)
            complaints.append(f"{name!r} is not an event type{'; similar types: ' + ', '.join(near) if near else ''}.")
    if complaints:
        raise InvalidOptions("\n".join([*complaints, f"All types: {', '.join(EVENT_TYPES)}."]))
    return tuple(chosen)


_REPEATED = {
    "token_file": "--token-file",
    "client_id": "--client-id",
    "client_secret_file": "--client-secret-file",
    "audience": "--audience",
    "dpop_key_file": "--dpop-key-file",
    "connect_to": "--connect-to",
    "ca_file": "--ca-file",
    "limit": "--max",
    "state": "--state",
    "give_up_after": "--give-up-after",
}


def resume_command(options: Mapping[str, Any], offset: str | None) -> list[str]:
    """Return the command that resumes after `offset`.

    The command contains no secret: in place of `--client-secret`, set `EVENTS_CLIENT_SECRET`.
    """
    program = os.path.relpath(sys.executable) if Path(sys.executable).is_relative_to(Path.cwd()) else sys.executable
    command = [program, sys.argv[0], "events", "tail", *([options["url"]] if options["url"] else [])]
    for name, flag in _REPEATED.items():
        if options[name] is not None:
            command += [flag, str(options[name])]
    for name, default in (("connect_timeout", 10.0), ("read_timeout", 45.0)):
        if options[name] != default:
            command += [f"--{name.replace('_', '-')}", f"{options[name]:g}"]
    command += [f"--{name.replace('_', '-')}" for name in ("dpop", "allow_http", "verbose", "once") if options[name]]
    command += [f"--{options['form']}"] if options["form"] else []
    for name in options["types"]:
        command += ["--type", name]
    # If a state file is used, it contains the offset, so the command needs no --from.
    return command if offset is None or options["state"] else [*command, "--from", offset]


def _status_of(error: StreamError) -> int:
    if isinstance(error, UnusableState):
        return UNUSABLE
    if (isinstance(error, Refused) and error.status == 410) or (isinstance(error, Ended) and error.code == "cursor_expired"):
        return EXPIRED
    return UNREACHABLE if isinstance(error, Untrusted) or error.remedy is Remedy.WAIT else REFUSED


def _timestamp(text: str | None) -> str | None:
    return None if text is None else wire_moment(text, datetime.now(UTC))


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number
