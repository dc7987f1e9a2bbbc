"""Read-only admin pages of the workers' internal rows: lanes, breakers, the sweeper's lease."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.http import HttpRequest

from events.admin.entities import NamesEntities
from events.models import EventStream
from identity.admin.scope import tenant_in_scope
from identity.admin.tenant_scope import ReadOnlyAdmin
from provisioning.admin.stream_names import NamesStreams
from provisioning.models import Breaker, Lane, Sweeper


class LaneAdmin(NamesStreams, NamesEntities, ReadOnlyAdmin[Lane]):
    """Lanes with waiting deliveries. Tokens of claims are not shown, because only workers use them."""

    list_display = ("about_entity", "stream", "not_before", "lease_until", "tenant_id")
    is_short_lived = True
    sortable_by = ()
    ordering = ("pk",)
    search_fields = ("=stream_id", "=key")
    search_help_text = "A stream id (est_…) or an entity (user:database|…)."
    fields = ("tenant_id", "stream", "key", "not_before", "lease_until", "delivery_id", "nudged_until")
    readonly_fields = ("stream",)
    empty_text = "No waiting deliveries."

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            self.name_rows(request, [row])
        return row

    def heading_of(self, row: Any) -> str:
        return f"Lane of {row.entity.text}"

    def rows_to_list(self, request: HttpRequest, rows: models.QuerySet[Lane]) -> models.QuerySet[Lane]:
        """Find the lanes of a tenant by its streams, because the index starts with the stream."""
        tenant = tenant_in_scope(request)
        if tenant is not None:
            rows = rows.filter(stream_id__in=list(EventStream.objects.of(tenant).values_list("pk", flat=True)))
        return super().rows_to_list(request, rows)


class BreakerAdmin(NamesStreams, ReadOnlyAdmin[Breaker]):
    stream_heading = "Failures of {}"
    grows = False
    list_display = ("stream", "failures", "unauthorized", "probe_at", "tenant_id")
    sortable_by = ()
    ordering = ("pk",)
    search_fields = ("=stream_id",)
    search_help_text = "A stream id (est_…)."
    empty_text = "No failures. A row appears with the first failure that a destination causes."


class SweeperAdmin(ReadOnlyAdmin[Sweeper]):
    grows = False
    list_display = ("name", "holder", "lease_until")
    sortable_by = ()
    ordering = ("pk",)
    empty_text = "No sweeper is running. Start a worker: only the sweep finds deliveries whose messages were lost."
