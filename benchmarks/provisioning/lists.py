"""Measures the cost of admin pages for 10,000 to one million rows: lists, groups of dead letters, and start pages."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any
from urllib.parse import urlencode

from django.db import models
from django.test import Client
from django.urls import reverse

from authapi.logs import browsing as sign_in_log
from authapi.models import Session, SignIn
from benchmarks.provisioning.admin_rows import Platform
from events.models import Event, LogEntry
from foundation.admin.keyset_list import KeysetChangeList
from foundation.database import keyset_pages as audit_log
from identity.models import AuditEntry, Job, Tenant, User
from identity.services.staff import create_staff
from provisioning.models import Attempt, DeadLetter, Delivery

_ROUNDS = 7
Figures = dict[str, float | str]


@dataclass(frozen=True)
class Listed:
    """A list and its queries: a search, and a filter that no row matches, so that the page examines the maximum number of rows.

    `search` returns the query string of a search that finds a row. If the list has its own parameters for pages, `place` returns the query
    string of the page after the given row.
    """

    name: str
    model: type[models.Model]
    filter: str = ""
    search: Callable[[Any], dict[str, Any]] | None = None
    place: Callable[[Any], dict[str, Any]] | None = None

    @property
    def address(self) -> str:
        return reverse(f"admin:{self.model._meta.app_label}_{self.model._meta.model_name}_changelist")


_LISTS = (
    Listed("event log", LogEntry, "type=group.deleted", lambda row: {"entity": row.event.root}, lambda row: {"before": row.position}),
    Listed("stored events", Event, "", lambda row: {"q": row.event_id}),
    Listed("deliveries", Delivery, "error_class__exact=action", lambda row: {"q": row.event_id}),
    Listed("attempts", Attempt, "error_class__exact=action"),
    Listed("dead letters", DeadLetter, "error_class__exact=action", lambda row: {"q": row.key}),
    Listed("users", User, "email_verified__exact=1", lambda row: {"q": row.email}),
    Listed("sessions", Session, "", lambda row: {"q": row.pk}),
    Listed(
        *("sign-in log", SignIn, "connection=nowhere", lambda row: {"user": row.user_id}),
        lambda row: {"before": sign_in_log.Place(row.created_at, row.pk).written()},
    ),
    Listed(
        *("audit log", AuditEntry, "kind=delete", lambda row: {"actor": row.actor_name}),
        lambda row: {"before": audit_log.Place(row.at, row.pk).written()},
    ),
    Listed("jobs", Job, "type__exact=tenant_deletion", lambda row: {"q": row.pk}),
)


def measure_lists(sizes: tuple[int, ...]) -> list[Figures]:
    """Fill the tables to each size, smallest first; return the median milliseconds of each page, for one tenant and for all tenants.

    First pages are measured at every size, all other pages only at the last size.
    """
    started = time.monotonic()
    platform = Platform.make(sizes[-1])
    viewers = {"tenant": _browser(platform.tenants[0]), "all": _browser(None)}
    results: list[Figures] = []
    filled = 0
    for size in sizes:
        platform.fill([listed.model for listed in _LISTS], filled, size)
        filled = size
        print(f"{size:,} rows in each table after {time.monotonic() - started:.0f} s", flush=True)
        for viewer, browser in viewers.items():
            for name, page, address in _pages(browser, viewer, half=size // 2 if size == sizes[-1] else 0):
                results.append({"list": name, "viewer": viewer, "page": page, "rows": size, "ms": _milliseconds(browser, address)})
    return results


def _pages(browser: Client, viewer: str, *, half: int) -> Iterator[tuple[str, str, str]]:
    yield "start page", "first", reverse("admin:index")
    if viewer == "tenant":
        yield "kinds of dead letters", "first", reverse("admin:provisioning_deadletter_kinds")
    for listed in _LISTS:
        yield listed.name, "first", listed.address
        if half:
            yield from ((listed.name, page, f"{listed.address}?{query}") for page, query in _questions(browser, listed, half))


def _questions(browser: Client, listed: Listed, half: int) -> Iterator[tuple[str, str]]:
    changelist = browser.get(listed.address).context_data["cl"]  # type: ignore[index]  # a template response
    rows = changelist.root_queryset
    ordered = changelist.order.sort(rows) if isinstance(changelist, KeysetChangeList) else rows.order_by("-pk")
    row = rows.get(pk=ordered.select_related(None).values_list("pk", flat=True)[half])
    if isinstance(changelist, KeysetChangeList):
        yield "middle", urlencode({"after": changelist.order.written(changelist.order.key_of(row))})
    elif listed.place is not None:
        yield "middle", urlencode(listed.place(row))
    if listed.filter:
        yield "filter", listed.filter
    if listed.search is not None:
        yield "search", urlencode(listed.search(row))


def _milliseconds(browser: Client, address: str) -> float:
    times = []
    for _ in range(_ROUNDS):
        started = time.monotonic()
        answer = browser.get(address)
        times.append((time.monotonic() - started) * 1000)
        assert answer.status_code == 200, (address, answer.status_code)
    return round(median(times), 1)


def _browser(tenant: Tenant | None) -> Client:
    email = f"bench-{secrets.token_hex(6)}@example.test"
    staff = create_staff(tenant_id=tenant.pk if tenant else None, email=email, password=secrets.token_urlsafe(24))
    browser = Client(headers={"host": "localhost"})
    browser.force_login(staff)
    return browser
