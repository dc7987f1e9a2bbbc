"""Admin pages of jobs: how far they are and what they could not take. Their input is not shown: it may hold password hashes."""

from __future__ import annotations

from django.contrib import admin

from identity.admin.badges import Tone, badge
from identity.admin.tenant_scope import ReadOnlyAdmin
from identity.models import Job, JobChunk, JobError


class JobAdmin(ReadOnlyAdmin[Job]):
    list_display = ("id", "type", "state", "connection", "created_at", "tenant")
    list_filter = ("type", "status", "created_at")
    list_select_related = ("connection", "tenant")
    sortable_by = ("created_at",)
    search_fields = ("=id",)
    fields = ("tenant", "id", "type", "state", "connection", "summary", "status_details", "started_at", "created_at", "updated_at")
    readonly_fields = ("state",)
    empty_text = "No jobs yet. Imports and exports of users are started through the management interface."

    @admin.display(description="State", ordering="status")
    def state(self, row: Job) -> str:
        tones: dict[str, Tone] = {Job.Status.COMPLETED: "good", Job.Status.FAILED: "bad"}
        return badge(row.get_status_display(), tones.get(row.status, "quiet"))


class JobChunkAdmin(ReadOnlyAdmin[JobChunk]):
    tenant_lookup = "job__tenant_id"
    list_display = ("job", "number", "is_done")
    list_select_related = ("job",)
    sortable_by = ()
    ordering = ("-pk",)
    search_fields = ("=job__id",)
    fields = ("job", "number", "is_done")
    empty_text = "No job is under way."


class JobErrorAdmin(ReadOnlyAdmin[JobError]):
    tenant_lookup = "job__tenant_id"
    list_display = ("job", "row_number", "errors")
    list_select_related = ("job",)
    sortable_by = ()
    ordering = ("-pk",)
    search_fields = ("=job__id",)
    search_help_text = "The id of a job."
    fields = ("job", "row_number", "user", "errors")
    empty_text = "Every row was taken."
