"""Admin pages of rows whose deletion can take long: the related rows, the progress and the job."""

from __future__ import annotations

from typing import Any, TypeVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest

from foundation.admin.badges import Tone, badge
from identity.admin.service_admin import ServiceAdmin
from identity.models.base import DeletedInParts
from identity.services.deletions import deletion_job, percentage, what_hangs_on

Row = TypeVar("Row", bound=DeletedInParts)
# The name of one row of each kind that a deletion counts.
SINGULAR = {
    "connections": "connection",
    "groups": "group",
    "groups with the role": "group with the role",
    "groups with the role in organizations": "group with the role in an organization",
    "identities linked to users of other connections": "identity linked to a user of another connection",
    "members": "member",
    "members of its groups": "member of a group",
    "members with the role in organizations": "member with the role in an organization",
    "memberships in other groups": "membership in another group",
    "memberships of its users in groups": "membership of a user in a group",
    "memberships of its users in organizations": "membership of a user in an organization",
    "organizations": "organization",
    "organizations that use the connection": "organization that uses the connection",
    "roles": "role",
    "roles in organizations": "role in an organization",
    "roles of groups": "role of a group",
    "roles of its own": "role of its own",
    "roles of members": "role of a member",
    "users": "user",
    "users with the role": "user with the role",
}


class DeletedInPartsAdmin(ServiceAdmin[Row]):
    """Shows the progress of a deletion in the list and on the page of the row."""

    def get_list_display(self, request: HttpRequest) -> Any:
        return [*super().get_list_display(request), "standing"]

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Leave out the column with the progress unless the page shows a row that is being deleted."""
        changelist = super().get_changelist_instance(request)
        if not any(row.is_being_deleted for row in changelist.result_list):
            changelist.list_display = [name for name in changelist.list_display if name != "standing"]
        return changelist

    def badge_of(self, row: Row) -> str:
        return self.standing(row) or super().badge_of(row)

    def counts_before_deletion(self, row: Row) -> dict[str, int]:
        return {kind_of(number, kind): number for kind, number in what_hangs_on(row).items()}

    @admin.display(description="Deletion")
    def standing(self, row: Any) -> str:
        return badge(*_progress(row)) if row.is_being_deleted else ""


def kind_of(number: int, kind: str) -> str:
    """Return the name of a counted kind, to be written after this number: the singular for 1, otherwise the plural."""
    return SINGULAR[kind] if number == 1 else kind


def _progress(row: Any) -> tuple[str, Tone]:
    job = deletion_job(row.tenant_id, row.pk)
    if job is None or job.status == job.Status.FAILED:
        return "Deletion failed: delete again", "bad"
    return f"Being deleted, {percentage(job)} %", "warn"
