"""Measures the costs at each size: of an event, a frame, a delivery, a token and an admin page, and of the periodic tasks."""

from __future__ import annotations

import asyncio
import secrets
import time
from pathlib import Path
from statistics import median

from django.test import Client
from django.urls import reverse

from benchmarks.auth.accounts import POSTGRESQL, SERVER, Accounts, databases
from benchmarks.auth.load import measured
from benchmarks.auth.subjects import ours as token_service
from benchmarks.provisioning.queues import queue
from benchmarks.stream.ours import ours as stream_service
from benchmarks.stream.programs import Programs
from benchmarks.stream.scenarios import Sizes, fan_out
from benchmarks.stream.subjects import Shape
from benchmarks.stream.world import Member, World
from config.celery import app
from config.settings.frameworks import CELERY_BEAT_SCHEDULE
from events.log.cursor import Cursor
from events.models import Head
from identity.models import Tenant
from identity.services.staff import create_staff

Figures = dict[str, float]

_EVENTS = 150
_TOKEN_CONNECTIONS, _TOKEN_SECONDS = 4, 3.0
_PAGE_ROUNDS = 5
_REPLAYED = 5000
_REPLAY_SECONDS = 60.0
_PAGES = {"start page": "index", "event log": "events_logentry_changelist", "users": "identity_user_changelist"}


class Probes:
    """The measured tenant, the compiled programs of the benchmarks, and the URL of the SCIM server that answers at once."""

    def __init__(self, world: World, programs: Programs, directory: Path, base: str) -> None:
        self.world = world
        self._programs = programs
        self._directory = directory
        self._base = base
        self._sizes = Sizes(rounds=3, events=60, round_seconds=2.0)
        self._browser = _browser(self.member)

    @property
    def member(self) -> Member:
        """The tenant whose events, streams and pages are measured."""
        return self.world.members(1)[0]

    def event(self) -> Figures:
        """Change a user repeatedly; return the milliseconds from the call to the commit, and the milliseconds of PostgreSQL's processor
        time."""
        accounts = Accounts(databases())
        before, times = accounts.taken(), []
        for _ in range(_EVENTS):
            started = time.monotonic()
            times.append(self.member.write(self._sizes.numbers.take()) - started)
        return {"event": median(times) * 1000, "event, PostgreSQL": accounts.since(before).get(POSTGRESQL, 0.0) / _EVENTS * 1000}

    def frame(self, streams: int, *, processes: int = 1) -> Figures:
        """Open streams of the tenant; return the microseconds of a web process per frame, and the milliseconds from a commit until the
        last stream has the event."""
        start = stream_service("ours", "uvicorn", self.world, self._directory, processes=processes)
        with start() as subject:
            figures = fan_out(subject, self._programs, Shape(1, streams), self._sizes)
        return {"frame": figures["us_per_frame"], "commit to stream": figures["ms_to_last_stream"]}

    def replay(self) -> Figures:
        """Resume a stream some thousand events before the end of the log; return the microseconds per event until the last event
        arrives."""
        head = Head.objects.get(pk=self.member.tenant_id)
        count = min(_REPLAYED, head.position - head.floor)
        cursor = self.world.sealer(self.member).seal(Cursor(head.epoch, head.position - count))
        request = self.member.subscription(self.member.token(), f"?from={cursor}")
        start = stream_service("ours", "uvicorn", self.world, self._directory)
        with start() as subject, self._programs.reader(subject.address) as reader:
            opened = reader.open([request])
            told = reader.wait(count, seconds=_REPLAY_SECONDS)
        assert told.frames == count, f"{told.frames} of {count} events were replayed"
        return {"replay": (told.last - opened.started) / count * 1e6}

    def delivery(self, people: int) -> Figures:
        """Deliver the events of new users of a new tenant by one worker process; return milliseconds per delivery."""
        waiting = queue(self._base, people)
        return {"delivery": waiting.run() / waiting.waiting * 1000}

    def token(self, *, processes: int = 1) -> Figures:
        """Issue `client_credentials` tokens; return milliseconds of the web processes per token, and tokens per second."""
        with token_service(_TOKEN_CONNECTIONS, processes=processes) as subject:
            accounts = Accounts({SERVER: subject.pid})
            requests = subject.client_credentials(_TOKEN_CONNECTIONS, _TOKEN_SECONDS)
            result = asyncio.run(measured(subject.port, requests, seconds=_TOKEN_SECONDS, accounts=accounts))
        return {"token": result.processor[SERVER], "tokens per second": result.rate}

    def pages(self) -> Figures:
        """Return the milliseconds of three pages of the tenant's administrator."""
        return {f"page: {name}": _milliseconds(self._browser, reverse(f"admin:{view}")) for name, view in _PAGES.items()}

    def periodic(self) -> Figures:
        """Run each periodic task once; return the milliseconds of all of them together."""
        app.loader.import_default_modules()
        started = time.monotonic()
        for entry in CELERY_BEAT_SCHEDULE.values():
            app.tasks[str(entry["task"])].apply(throw=True)
        return {"periodic work": (time.monotonic() - started) * 1000}


def _milliseconds(browser: Client, address: str) -> float:
    times = []
    for _ in range(_PAGE_ROUNDS):
        started = time.monotonic()
        response = browser.get(address)
        times.append((time.monotonic() - started) * 1000)
        assert response.status_code == 200, (address, response.status_code)
    return median(times)


def _browser(member: Member) -> Client:
    tenant = Tenant.objects.get(pk=member.tenant_id)
    staff = create_staff(tenant_id=tenant.pk, email=f"bench-{secrets.token_hex(6)}@example.test", password=secrets.token_urlsafe(24))
    browser = Client(headers={"host": "localhost"})
    browser.force_login(staff)
    return browser
