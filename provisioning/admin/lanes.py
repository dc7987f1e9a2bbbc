"""Admin pages of what workers keep for themselves: lanes, breakers, the sweeper's lease."""

from __future__ import annotations

from identity.admin.tenant_scope import ReadOnlyAdmin
from provisioning.models import Breaker, Lane, Sweeper


class LaneAdmin(ReadOnlyAdmin[Lane]):
    """What waits, per stream and document. Tokens are not shown: they are of use to their worker only."""

    list_display = ("key", "stream_id", "not_before", "lease_until", "tenant_id")
    sortable_by = ()
    ordering = ("pk",)
    search_fields = ("=stream_id", "=key")
    search_help_text = "A stream id (est_…) or an entity (user:database|…)."
    fields = ("tenant_id", "stream_id", "key", "not_before", "lease_until", "delivery_id", "nudged_until")
    empty_text = "Nothing waits: every delivery is settled."


class BreakerAdmin(ReadOnlyAdmin[Breaker]):
    list_display = ("stream_id", "failures", "probe_at", "tenant_id")
    sortable_by = ()
    ordering = ("pk",)
    search_fields = ("=stream_id",)
    empty_text = "No stream has failed. A row appears with the first failure that speaks against a destination."


class SweeperAdmin(ReadOnlyAdmin[Sweeper]):
    list_display = ("name", "holder", "lease_until")
    sortable_by = ()
    ordering = ("pk",)
    empty_text = "No worker sweeps. Start one: nothing is lost, but lost messages are found again only by the sweep."
