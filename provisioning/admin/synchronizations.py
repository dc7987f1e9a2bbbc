"""Starts synchronizations on the page of a stream. Shows, on the page of the job, the report and the buttons that continue the job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import quote, unquote
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.urls import URLPattern, path, reverse

from events.models import EventStream
from foundation.admin.panels import Cell, Panel
from identity.admin.jobs import state_text
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.people.labels import MAY_SEE_USERS, NamesUsers, label_of, person_cell, users_by_id
from identity.admin.scope import actor_of
from identity.admin.tenant_scope import ReadOnlyAdmin
from identity.job_rights import permission_to_end
from identity.models import Job, User
from identity.services.failures import NotFound
from provisioning.models import SynchronizationRow
from provisioning.synchronization import phases, service
from provisioning.synchronization.plan import MOST_PER_SECOND, USER_NAME, Plan
from provisioning.synchronization.state import outcomes_of

_SHOWN = 50
_JOBS_SHOWN = 5
# Answers of staff to a job. The key is the member of the job that stores the actor of the answer.
_ANSWERS = {"resumed_by": "Resumed", "confirmed_by": "Deletions allowed", "declined_by": "Deletions declined"}
_TELLING = ("skipped", "ambiguous", "failed", "missing", "different", "extra", "updated", "linked", "deleted")


class DryRunForm(forms.Form):
    match = forms.CharField(
        max_length=700,
        initial=USER_NAME,
        label="Link by",
        help_text="The attribute that identifies the user of an account without an externalId: userName, emails.value (verified addresses "
        "only), or <SCIM path>=<JMESPath of the user>, such as employeeNumber=app_metadata.employee_number. Enter “none” to link no "
        "account.",
    )
    rate = forms.IntegerField(
        min_value=1,
        max_value=MOST_PER_SECOND,
        initial=20,
        label="Users per second",
        help_text="At most this number. Lower the number if the server is slow or limits requests.",
    )


class WriteForm(forms.Form):
    enable = forms.BooleanField(
        required=False,
        label="Enable the stream at the end",
        help_text="The stream also delivers the changes made during the synchronization, so that no change is missed.",
    )
    delete_missing = forms.BooleanField(
        required=False,
        label="Delete accounts without a user",
        help_text="Deletes accounts whose externalId comes from this service and belongs to no user. Other accounts are never deleted.",
    )
    deletion_limit = forms.CharField(
        max_length=12,
        initial="10",
        label="Deletions without approval",
        help_text="A number of accounts, or a percentage of the accounts with an externalId of this service, such as 5%. If more "
        "accounts would be deleted, the service first waits for your approval.",
    )


def _started(request: HttpRequest, stream_id: str, tenant_id: str, plan: Plan) -> str:
    job = service.start(tenant_id=tenant_id, stream_id=stream_id, plan=plan, actor=actor_of(request))
    return f"Job {job.pk} was started. The page of the job shows the progress and the report."


def _dry_run(request: HttpRequest, stream: EventStream, values: dict[str, Any]) -> str:
    return _started(request, stream.pk, stream.tenant_id, Plan(is_dry_run=True, match=values["match"], rate=values["rate"]))


def _compare(request: HttpRequest, stream: EventStream, _values: dict[str, Any]) -> str:
    return _started(request, stream.pk, stream.tenant_id, Plan(only_reports=True))


def _write(request: HttpRequest, job: Job, values: dict[str, Any]) -> str:
    dry = Plan.of_document(job.parameters["plan"])
    asked = {"enables_stream": values["enable"], "deletes_missing": values["delete_missing"], "deletion_limit": values["deletion_limit"]}
    return _started(request, job.parameters["stream_id"], job.tenant_id, replace(dry, is_dry_run=False, **asked))


def _leads_to_action(stream: EventStream) -> bool:
    return stream.destination_type == "action"


def _waits_for(question: str) -> Callable[[Job], bool]:
    return lambda job: job.type in service.TYPES and not job.is_finished and job.parameters.get("waits_for") == question


def _may_be_written(job: Job) -> bool:
    return job.type == Job.Type.STREAM_SYNCHRONIZATION and job.status == Job.Status.COMPLETED and job.parameters["plan"]["is_dry_run"]


def _resume(request: HttpRequest, job: Job, _values: dict[str, Any]) -> str:
    service.resume(tenant_id=job.tenant_id, job_id=job.pk, actor=actor_of(request))
    return "The synchronization was resumed. It continues where it stopped."


def _confirm(request: HttpRequest, job: Job, _values: dict[str, Any]) -> str:
    service.confirm_deletions(tenant_id=job.tenant_id, job_id=job.pk, actor=actor_of(request))
    return "The accounts will be deleted."


def _decline(request: HttpRequest, job: Job, _values: dict[str, Any]) -> str:
    service.decline_deletions(tenant_id=job.tenant_id, job_id=job.pk, actor=actor_of(request))
    return "The accounts will not be deleted."


STREAM_ACTIONS = (
    ObjectAction(
        name="synchronize",
        label="Synchronize",
        explain=lambda *_: (
            "Starts a dry run, which looks up all users on the server and writes nothing. The page of its job shows what a synchronization "
            "would change, and has a button that starts the synchronization."
        ),
        run=_dry_run,
        is_offered=_leads_to_action,
        form_class=DryRunForm,
    ),
    ObjectAction(
        name="compare",
        label="Compare",
        explain=lambda *_: (
            "Reports users without an account on the server, accounts without a user, and attributes that differ. Nothing is written."
        ),
        run=_compare,
        is_offered=_leads_to_action,
    ),
)
JOB_ACTIONS = (
    ObjectAction(
        name="write",
        label="Write these changes",
        explain=lambda _request, job: (
            f"Starts the synchronization, which writes to the server. The dry run found: {_counts(job)}. The service looks up all users "
            "again, so later changes are included."
        ),
        run=_write,
        is_offered=_may_be_written,
        permission=permission_to_end,
        form_class=WriteForm,
        is_dangerous=True,
    ),
    ObjectAction(
        name="resume",
        label="Resume",
        explain=lambda _request, job: f"The synchronization continues where it stopped. It stopped because: {job.status_details}",
        run=_resume,
        is_offered=_waits_for(phases.RESUME),
        permission=permission_to_end,
    ),
    ObjectAction(
        name="confirm-deletions",
        label="Allow the deletions",
        explain=lambda _request, job: job.status_details,
        run=_confirm,
        is_offered=_waits_for(phases.CONFIRMATION),
        permission=permission_to_end,
        is_dangerous=True,
    ),
    ObjectAction(
        name="decline-deletions",
        label="Keep the accounts",
        explain=lambda *_: "The synchronization ends without these deletions.",
        run=_decline,
        is_offered=_waits_for(phases.CONFIRMATION),
        permission=permission_to_end,
    ),
)


def jobs_of(site: admin.AdminSite, stream: EventStream) -> Panel | None:
    """List the newest synchronizations of a stream."""
    if not _leads_to_action(stream):
        return None
    rows = [
        (
            Cell(job.pk, reverse(f"{site.name}:identity_job_change", args=(quote(job.pk),))),
            Cell(_kind(job)),
            Cell(state_text(job)),
            Cell(f"{job.created_at:%Y-%m-%d %H:%M}"),
            Cell(_counts(job)),
        )
        for job in service.of_stream(tenant_id=stream.tenant_id, stream_id=stream.pk)[:_JOBS_SHOWN]
    ]
    empty = "No synchronizations yet. Users that existed before the stream was enabled may be missing on the server. Synchronize them."
    return Panel("Synchronizations", ("Job", "Kind", "State", "Created (UTC)", "Users"), rows, empty_text=empty)


def report_of(site: admin.AdminSite, request: HttpRequest, job: Job) -> Panel:
    """Return the number of users per outcome, and the first users that need attention."""
    found = list(SynchronizationRow.objects.filter(job=job, outcome__in=_TELLING).order_by("pk")[:_SHOWN])
    users = users_by_id((job.tenant_id, row.user_id) for row in found) if request.user.has_perm(MAY_SEE_USERS) else {}
    rows = [
        (
            Cell(row.get_outcome_display()),
            _user_cell(site, users.get((job.tenant_id, row.user_id)), row.user_id),
            Cell(row.scim_id),
            Cell(row.reason or ", ".join(difference["path"] for difference in row.differences)),
        )
        for row in found
    ]
    answers = [
        (Cell(said), Cell(f"by {job.parameters[name]}"), Cell(""), Cell("")) for name, said in _ANSWERS.items() if job.parameters.get(name)
    ]
    return Panel(
        f"{_kind(job)}: {_counts(job)}",
        ("Outcome", "User", "Account", "Reason or differences"),
        [*answers, *rows],
        "No user needs attention." if job.is_finished else "No user needs attention yet.",
        reverse(f"{site.name}:provisioning_synchronizationrow_report", args=(quote(job.pk),)),
        "Download the report (JSON lines, one per user)",
        is_more_of_use=True,
    )


def _user_cell(site: admin.AdminSite, user: User | None, user_id: str) -> Cell:
    if user is None:
        return Cell(user_id)
    return person_cell(user, reverse(f"{site.name}:identity_user_change", args=(quote(user.pk),)))


def _counts(job: Job) -> str:
    return ", ".join(f"{number:,} {outcome}" for outcome, number in outcomes_of(job).items()) or "no users yet"


def _kind(job: Job) -> str:
    plan = Plan.of_document(job.parameters["plan"])
    return "Comparison" if plan.only_reports else "Dry run" if plan.is_dry_run else "Synchronization"


class SynchronizationRowAdmin(NamesUsers, ReadOnlyAdmin[SynchronizationRow], ObjectActionsAdmin[SynchronizationRow]):
    """Results of synchronizations by user; the full report of a job is a file of JSON lines."""

    tenant_lookup = "job__tenant_id"
    user_column = "user_id"
    list_display = ("about_user", "outcome", "scim_id", "reason", "job")
    list_select_related = ("job",)
    sortable_by = ()
    ordering = ("job", "pk")
    lists_only_found = True
    search_fields = ("=job__id",)
    search_help_text = "The id of a synchronization or comparison: the id of its job (job_…)."
    has_history = False
    readonly_fields = ("about_user",)
    fieldsets = (
        (None, {"fields": ("outcome", "reason", "about_user", "scim_id", "job", "recorded_at")}),
        ("Differences", {"fields": ("error_class", "differences"), "classes": ("collapse",)}),
    )
    empty_text = "Enter the id of a job to see its users. To start such a job, open an event stream and choose “Synchronize” or “Compare”."

    def heading_of(self, row: SynchronizationRow) -> str:
        user = self.user_of(row)
        return f"{row.get_outcome_display()}: {label_of(user) if user is not None else row.user_id or row.scim_id}"

    def tenant_id_of(self, row: SynchronizationRow) -> str:
        return row.job.tenant_id

    def get_urls(self) -> list[URLPattern]:
        name = "provisioning_synchronizationrow_report"
        return [path("<str:job_id>/report/", self.admin_site.admin_view(self.report_view), name=name), *super().get_urls()]

    def report_view(self, request: HttpRequest, job_id: str) -> StreamingHttpResponse:
        """Send the report of a job to staff of its tenant as JSON lines."""
        page = self.admin_site.get_model_admin(Job)
        job = page.get_object(request, unquote(job_id))
        if job is None or not page.has_view_permission(request, job):
            raise Http404
        try:
            job = service.found(tenant_id=job.tenant_id, job_id=job.pk)
        except NotFound as error:
            raise Http404 from error
        page.log_change(request, job, "Downloaded the report")
        headers = {"Content-Disposition": f'attachment; filename="{job.pk}.jsonl"', "Cache-Control": "no-store"}
        return StreamingHttpResponse(list(service.report_lines(job)), content_type="application/jsonl", headers=headers)
