"""Admin pages of rows whose deletion can take long: the related rows, the progress and the job."""

from __future__ import annotations

from typing import Any, TypeVar

from django.contrib import admin
from django.http import HttpRequest

from foundation.admin.badges import Tone, badge
from identity.admin.service_admin import ServiceAdmin
from identity.models.base import DeletedInParts
from identity.services.deletions import deletion_job, percentage, what_hangs_on

Row = TypeVar("Row", bound=DeletedInParts)


class DeletedInPartsAdmin(ServiceAdmin[Row]):
    """Shows the progress of a deletion in the list and on the page of the row."""

    def get_list_display(self, request: HttpRequest) -> Any:
        return [*super().get_list_display(request), "standing"]

    def badge_of(self, row: Row) -> str:
        return self.standing(row) or super().badge_of(row)

    def counts_before_deletion(self, row: Row) -> dict[str, int]:
        return what_hangs_on(row)

    @admin.display(description="Standing")
    def standing(self, row: Any) -> str:
        return badge(*_progress(row)) if row.is_being_deleted else ""


def _progress(row: Any) -> tuple[str, Tone]:
    job = deletion_job(row.tenant_id, row.pk)
    if job is None or job.status == job.Status.FAILED:
        return "Deletion stopped. Delete it again", "bad"
    return f"Being deleted, {percentage(job)} %", "warn"
