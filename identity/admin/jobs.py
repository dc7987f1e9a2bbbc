"""Admin pages of jobs: their progress and their errors. The input of a job is not shown, because it may contain password hashes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import admin
from django.contrib.admin.utils import quote, unquote
from django.core.handlers.asgi import ASGIRequest
from django.db import models
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.timesince import timesince

from foundation.admin.badges import Tone, badge
from foundation.admin.field_labels import sentence_of
from foundation.admin.panels import Cell, Panel
from identity.admin.bulk_progress import bulk_progress, only_visible, title_of
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.scope import actor_of
from identity.admin.tenant_scope import ReadOnlyAdmin
from identity.exports.export_files import ExportedFile, exported_file, file_name, read_piece
from identity.job_rights import permission_to_end
from identity.models import Job, JobChunk, JobError
from identity.services.failures import NotFound
from identity.services.jobs import can_be_cancelled, cancel_job

_ERRORS_SHOWN = 50


def state_text(job: Job) -> str:
    """Return the state in words. If the job is paused until an administrator decides, the text says that it waits for a decision."""
    return "Waiting for a decision" if job.waits_for_answer else job.get_status_display()


def _cancel(request: HttpRequest, job: Job, _values: dict[str, Any]) -> str:
    cancel_job(tenant_id=job.tenant_id, job_id=job.pk, actor=actor_of(request))
    return "Job canceled."


# The counts of a job and their names on its page.
_COUNTED = {
    "inserted": "added",
    "updated": "updated",
    "done": "done",
    "failed": "failed",
    "gone": "already deleted",
    "exported": "exported",
}


class JobAdmin(ReadOnlyAdmin[Job], ObjectActionsAdmin[Job]):
    change_form_template = "admin/job_form.html"
    id_field = "id"
    # Names of actions in order of precedence. The first of these actions that applies to the job is a button; all other actions of the job
    # are in the menu “More”. Other apps add names.
    primary_actions: tuple[str, ...] = ("file",)
    list_display = ("id", "what", "state", "progress", "connection", "created_at", "tenant")
    list_filter = ("type", "status", "created_at")
    list_select_related = ("connection", "tenant")
    ordering = ("-created_at", "-pk")
    indexed_filters = ("created_at",)
    search_fields = ("=id",)
    search_help_text = "Id of a job."
    fields = ("tenant", "progress", "rows", "time_left", "connection", "status_details", "started_at", "finished_at",
              "created_at", "updated_at")  # fmt: skip
    readonly_fields = ("what", "state", "progress", "rows", "time_left")
    hidden_if_empty = ("rows", "time_left", "connection", "status_details", "started_at", "finished_at")
    empty_text = (
        "No jobs yet. Start imports and exports of users with the management interface. An action on more than 100 rows of a list is "
        "a job, too."
    )
    object_actions: Sequence[ObjectAction] = (
        ObjectAction(
            name="cancel",
            label="Cancel",
            explain=lambda *_: "The job stops after the rows that it is processing now. Its changes until then are kept.",
            run=_cancel,
            is_offered=can_be_cancelled,
            is_dangerous=True,
            permission=permission_to_end,
        ),
    )

    def __init__(self, model: type[Job], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        # Progress panels by type of job. Other apps add panels.
        self.reports: dict[str, Callable[[HttpRequest, Job], Panel]] = {Job.Type.BULK_ACTION: bulk_progress}
        self.panels += [self.report, self.row_errors]

    def report(self, request: HttpRequest, job: Job) -> Panel | None:
        """Return the progress of the job; None for a type without a progress panel."""
        return self.reports[job.type](request, job) if job.type in self.reports else None

    def get_urls(self) -> list[URLPattern]:
        own = path("<path:object_id>/file/", self.admin_site.admin_view(self.file_view), name="identity_job_file")
        return [own, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Job]:
        return only_visible(request, super().get_queryset(request))

    def file_view(self, request: HttpRequest, object_id: str) -> StreamingHttpResponse:
        """Stream the file of a finished export to staff of its tenant, and note the download in the audit log."""
        job = self.get_object(request, unquote(object_id))
        if not self.has_view_permission(request, job):
            raise Http404
        try:
            file = exported_file(tenant_id=job.tenant_id, name=file_name(job))
        except NotFound as error:
            raise Http404 from error
        self.log_change(request, job, "Downloaded")
        pieces = _pieces(file) if isinstance(request, ASGIRequest) else (read_piece(file, number) for number in range(file.piece_count))
        headers = {
            "Content-Disposition": f'attachment; filename="{file.name}"',
            "Content-Length": str(file.size),
            "Cache-Control": "no-store",
        }
        return StreamingHttpResponse(pieces, content_type="application/gzip", headers=headers)

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        job = context.get("original")
        if job is not None:
            context["refresh_seconds"] = 0 if job.is_finished else 5
        response = super().render_change_form(request, context, *args, **kwargs)
        if job is not None:
            offered = [action["name"] for action in response.context_data["object_actions"]]
            # `primary_actions` is ordered: a decision that the job waits for comes before the download of a file.
            response.context_data["primary_action"] = next((name for name in self.primary_actions if name in offered), "")
        return response

    def heading_of(self, row: Job) -> str:
        return self.what(row)

    def buttons_of(self, request: HttpRequest, row: Job) -> list[dict[str, Any]]:
        """Return the actions of the job. For a finished export, the first action is the download of the file."""
        own = super().buttons_of(request, row)
        if row.type != Job.Type.USERS_EXPORT or row.status != Job.Status.COMPLETED:
            return own
        address = reverse(f"{self.admin_site.name}:identity_job_file", args=(quote(row.pk),))
        return [{"name": "file", "label": "Download the file", "url": address, "is_dangerous": False}, *own]

    def row_errors(self, request: HttpRequest, job: Job) -> Panel | None:
        """Return the panel of the first rows with errors, one line per error."""
        if job.type not in (Job.Type.USERS_IMPORT, Job.Type.BULK_ACTION):
            return None
        is_import = job.type == Job.Type.USERS_IMPORT
        errors = list(job.errors.order_by("row_number", "pk")[:_ERRORS_SHOWN])
        rows = [
            (
                Cell(str(error.row_number)),
                Cell(_name_of(error.user)),
                Cell(problem.get("path", "")),
                Cell(problem["code"]),
                Cell(problem["message"]),
            )
            for error in errors
            for problem in error.errors
        ]
        every = f"{reverse(f'{self.admin_site.name}:identity_joberror_changelist')}?q={job.pk}"
        return Panel(
            "Rows that were not imported" if is_import else "Rows that failed",
            ("Row", "User" if is_import else "Name", "Field", "Code", "Reason"),
            rows,
            empty_text=_without_errors(job),
            more_url=every if len(errors) == _ERRORS_SHOWN else "",
            more_text="Show all",
        )

    @admin.display(description="Type", ordering="type")
    def what(self, row: Job) -> str:
        return title_of(row) if row.type == Job.Type.BULK_ACTION else sentence_of(row.type, row.get_type_display())

    @admin.display(description="State", ordering="status")
    def state(self, row: Job) -> str:
        tones: dict[str, Tone] = {Job.Status.COMPLETED: "good", Job.Status.FAILED: "bad"}
        return badge(state_text(row), "warn" if row.waits_for_answer else tones.get(row.status, "quiet"))

    @admin.display(description="Progress")
    def progress(self, row: Job) -> str:
        return f"{row.percentage_done} %"

    @admin.display(description="Rows")
    def rows(self, row: Job) -> str:
        counted = [f"{row.summary[name]:,} {text}" for name, text in _COUNTED.items() if name in row.summary]
        if "total" not in row.summary:
            return self.get_empty_value_display()
        done = f"{row.rows_done:,} of {row.summary['total']:,}"
        return f"{done}: {', '.join(counted)}" if counted else done

    @admin.display(description="Time left")
    def time_left(self, row: Job) -> str:
        now = timezone.now()
        seconds = row.seconds_left(now)
        if row.is_finished or seconds is None:
            return self.get_empty_value_display()
        return f"about {seconds} seconds" if seconds < 120 else f"about {timesince(now - timedelta(seconds=seconds), now)}"


async def _pieces(file: ExportedFile) -> AsyncIterator[bytes]:
    for number in range(file.piece_count):
        yield await sync_to_async(read_piece)(file, number)


def _without_errors(job: Job) -> str:
    if not job.is_finished:
        return "No row has failed so far."
    is_complete = job.type == Job.Type.USERS_IMPORT and job.status == Job.Status.COMPLETED
    return "All rows were imported." if is_complete else "No row failed."


def _name_of(row: dict[str, Any]) -> str:
    return next((str(row[name]) for name in ("email", "username", "phone_number", "user_id", "name") if row.get(name)), "")


def extend_jobs(
    site: admin.AdminSite,
    reports: Mapping[str, Callable[[HttpRequest, Job], Panel]],
    actions: Sequence[ObjectAction],
    *,
    primary: Sequence[str],
) -> None:
    """Add the progress panels and buttons of another app to the page of jobs. `primary`: names of actions that come first."""
    page = site.get_model_admin(Job)
    if isinstance(page, JobAdmin):
        page.reports.update(reports)
        page.object_actions = (*page.object_actions, *actions)
        page.primary_actions = (*primary, *page.primary_actions)


class JobChunkAdmin(ReadOnlyAdmin[JobChunk]):
    titled = "Part {row.number} of {row.job_id}"
    tenant_lookup = "job__tenant_id"
    list_display = ("job", "number", "is_done")
    list_select_related = ("job",)
    sortable_by = ()
    ordering = ("job", "number")
    lists_only_found = True
    search_fields = ("=job__id",)
    fields = ("job", "number", "is_done")
    search_help_text = "Id of a job."
    empty_text = "Enter the id of a running job to see its parts."

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[JobChunk]:
        return only_visible(request, super().get_queryset(request), job="job__")


class JobErrorAdmin(ReadOnlyAdmin[JobError]):
    titled = "Row {row.row_number} of {row.job_id}"
    tenant_lookup = "job__tenant_id"
    list_display = ("job", "row_number", "errors")
    list_select_related = ("job",)
    sortable_by = ()
    ordering = ("job", "row_number", "pk")
    lists_only_found = True
    search_fields = ("=job__id",)
    search_help_text = "Id of a job."
    fields = ("job", "row_number", "user", "errors")
    empty_text = "Enter the id of a job to see its errors."

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[JobError]:
        return only_visible(request, super().get_queryset(request), job="job__")
