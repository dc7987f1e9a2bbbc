"""The page of open connections.

It shows which clients read the stream and how far they have read. It has buttons to close a connection and to send a test event.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from authapi.models import Client
from events.admin.live import PERMISSION
from events.log.envelope import event_source
from events.stream.operating.canary_watch import CanaryFate, measure_canary
from events.stream.operating.connections import OpenConnection, OpenConnections, disconnect, open_connections
from events.stream.staff_admission import STAFF
from identity.admin.tenant_page import TenantPage
from identity.audit.entries import record
from identity.hosts import address_beside, canonical_host
from identity.models import Tenant

logger = logging.getLogger(__name__)

# The permission to close connections and to send test events.
ACT = "events.manage_connections"
_CLIENTS_OFFERED = 200
_REFRESH_SECONDS = 5


@dataclass(frozen=True)
class Shown:
    """A connection, with additional values for the page."""

    connection: OpenConnection
    client_name: str
    client_url: str
    disconnect_url: str

    @property
    def is_staff(self) -> bool:
        return self.connection.client_id.startswith(STAFF)

    @property
    def age(self) -> str:
        return _time_since(self.connection.opened_at)

    @property
    def quiet(self) -> str:
        return _time_since(self.connection.written_at)

    @property
    def blocked(self) -> str:
        since = self.connection.blocked_since
        return "" if since is None else _time_since(since)


class ConnectionsPage(TenantPage):
    """Open connections of all processes."""

    label = "events.connections-page"
    title = "Open streams of clients"
    url_name = "events_connections"
    permission = PERMISSION

    def urls(self) -> list[URLPattern]:
        place = "events/connections/"
        return [
            path(place, self.for_tenant(self.show), name=self.url_name),
            path(f"{place}canary/", self.for_tenant(require_POST(self.send_canary), ACT), name=f"{self.url_name}_canary"),
            path(f"{place}<slug:connection_id>/disconnect/", self.for_tenant(self.disconnect, ACT), name=f"{self.url_name}_disconnect"),
        ]

    def show(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        """List the connections. The page reloads itself, even without JavaScript."""
        found = open_connections(tenant_id)
        context = {
            "tenant_id": tenant_id,
            "shown": self._shown(found, tenant_id),
            "silent_processes": found.silent_processes,
            "clients": _clients(tenant_id, found),
            "canary_url": reverse(f"{self.site.name}:{self.url_name}_canary"),
            "stream_address": f"{address_beside(request.get_host(), tenant_id)}/api/v2/events",
            "refresh_seconds": _REFRESH_SECONDS,
            "may_act": self.may_see(request, ACT),
            "now": timezone.now(),
        }
        return self.page(request, "admin/open_connections.html", context)

    def disconnect(self, request: HttpRequest, tenant_id: str, connection_id: str) -> HttpResponse:
        """Show the effects of closing the connection. On POST, close the connection, and record in the audit log who closed it."""
        found = open_connections(tenant_id)
        chosen = next((shown for shown in self._shown(found, tenant_id) if shown.connection.connection_id == connection_id), None)
        if chosen is None:
            if request.method != "POST":
                raise Http404
            messages.warning(request, "This stream has already ended.")
            return HttpResponseRedirect(self.address)
        if request.method == "POST":
            self._close(request, tenant_id, chosen)
            return HttpResponseRedirect(self.address)
        return self.page(request, "admin/disconnect.html", {"title": "Disconnect", "chosen": chosen, "list_url": self.address})

    def send_canary(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        """Send a test event to the open streams of one client, and show after how many milliseconds each stream got the event."""
        client = Client.objects.of(tenant_id).filter(client_id=request.POST.get("client", "")).first()
        if client is None:
            raise Http404
        source = event_source(settings.EVENT_SOURCE_NAMESPACE, tenant_id, canonical_host(tenant_id))
        fate = measure_canary(tenant_id=tenant_id, client_id=client.client_id, source=source)
        level, text = _told(fate, client.name or client.client_id)
        messages.add_message(request, level, text)
        return HttpResponseRedirect(self.address)

    def _close(self, request: HttpRequest, tenant_id: str, chosen: Shown) -> None:
        connection = chosen.connection
        if not disconnect(tenant_id, connection.connection_id):
            messages.warning(request, "This stream has already ended.")
            return
        _note(request, tenant_id, connection)
        text = f"The stream of {chosen.client_name} is closed. The client may reconnect with its offset at once."
        messages.success(request, text)

    def _shown(self, found: OpenConnections, tenant_id: str) -> list[Shown]:
        names = {connection.client_id for connection in found.connections}
        known = {client.client_id: client for client in Client.objects.of(tenant_id).filter(client_id__in=names)}
        return [self._one(connection, known.get(connection.client_id)) for connection in found.connections]

    def _one(self, connection: OpenConnection, client: Client | None) -> Shown:
        place = self.site.name
        return Shown(
            connection,
            client_name=(client.name if client else "") or connection.client_id,
            client_url=reverse(f"{place}:authapi_client_change", args=(client.pk,)) if client else "",
            disconnect_url=reverse(f"{place}:{self.url_name}_disconnect", args=(connection.connection_id,)),
        )


def _time_since(moment: datetime) -> str:
    """Return the time since this moment, in the two largest units: `42 s`, `3 min 5 s`, `2 h 10 min`."""
    minutes, seconds = divmod(max(0, int((timezone.now() - moment).total_seconds())), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _clients(tenant_id: str, found: OpenConnections) -> list[Client]:
    """Return the clients that can receive a test event, connected clients first."""
    connected = {connection.client_id for connection in found.connections}
    every = Client.objects.of(tenant_id).filter(revoked_at=None)
    others = list(every.exclude(client_id__in=connected).order_by("pk")[:_CLIENTS_OFFERED])
    return [*every.filter(client_id__in=connected).order_by("pk"), *others]


def _told(fate: CanaryFate, client_name: str) -> tuple[int, str]:
    """Return the text and the level of the message that reports the result of a test event."""
    count = fate.silent_processes
    unheard = f" {count} process{'' if count == 1 else 'es'} did not answer in time, so their streams are not counted." if count else ""
    if not fate.arrivals:
        reason = f"the filters of its open streams ({fate.left_out}) exclude the test event" if fate.left_out else "it has no open stream"
        return messages.WARNING, f"{client_name} got no test event: {reason}.{unheard}"
    times = ", ".join(f"{elapsed:.1f} ms" for elapsed in fate.written)
    reached = f"The test event reached {len(fate.written)} of {len(fate.arrivals)} open streams of {client_name}"
    behind = f" In {fate.waiting} of these streams, the test event waits until earlier events are written." if fate.waiting else ""
    level = messages.WARNING if fate.waiting else messages.SUCCESS
    return level, f"{reached}{f' after {times}' if times else ''}.{behind}{unheard}"


def _note(request: HttpRequest, tenant_id: str, connection: OpenConnection) -> None:
    """Record in the process log and in the audit log that staff closed the connection.

    The audit entry is about the client, or about the tenant if the client no longer exists.
    """
    row: Any = Client.objects.of(tenant_id).filter(client_id=connection.client_id).first() or Tenant.objects.get(pk=tenant_id)
    message = f"Disconnected {connection.connection_id} from {connection.address}"
    record(message, about=row)
    logger.info("staff %s disconnected %s of %s in %s", request.user.pk, connection.connection_id, connection.client_id, tenant_id)
