"""Admin pages that add, change and delete rows through services only, one row or many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Literal, TypeVar

from django.contrib import messages
from django.contrib.admin.utils import flatten_fieldsets, quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html

from foundation.admin.beside_rows import page_beside
from foundation.admin.readable_form import ReadableForm
from foundation.admin.returning import place_to_return_to
from foundation.database.transactions import unit_of_work
from identity.admin.assurance import asked_for_proof
from identity.admin.bulk_actions import delete_selected
from identity.admin.object_actions import ObjectActionsAdmin
from identity.admin.refusals import as_text, refusals
from identity.admin.service_form import ServiceForm
from identity.models import Job
from identity.services.bulk_acts import deletion_act

Row = TypeVar("Row", bound=models.Model)


class ServiceAdmin(ObjectActionsAdmin[Row]):
    """The base class of admin pages that change rows through services. Subclasses implement `create` and `change`; `row_acts` implements
    deletion.

    A refusal is shown at the form or as a message.
    """

    form = ServiceForm
    actions: Sequence[Callable[..., Any]] = (delete_selected,)
    # The effect of a deletion on related rows, shown before the confirmation.
    deletion_effect: str = ""
    delete_confirmation_template = "admin/delete_row.html"
    # Steps that need a recent proof: "add" to show the form of a new row, "change" to save a change.
    proof_for: frozenset[Literal["add", "change"]] = frozenset()
    # Fields that need a recent proof if a value is entered, such as secrets.
    proven_fields: Sequence[str] = ()

    def create(self, request: HttpRequest, form: Any) -> Row:
        """Create the row through its service."""
        raise NotImplementedError

    def change(self, request: HttpRequest, row: Row, form: Any) -> None:
        """Change the row through its service."""
        raise NotImplementedError

    def remove(self, request: HttpRequest, row: Row) -> Job | None:
        """Delete the row through its service. Return the job that continues the deletion, if there is one."""
        job = deletion_act(self.model).do(row)
        return job if isinstance(job, Job) else None

    def wants_proof(self, request: HttpRequest, object_id: str | None) -> bool:
        """Tell whether this request needs a recent proof. Subclasses may inspect the submitted values."""
        is_entered = request.method == "POST" and any(request.POST.get(name) for name in self.proven_fields)
        if object_id is None:
            return ("add" in self.proof_for or is_entered) and self.has_add_permission(request)
        is_proven = "change" in self.proof_for and request.method == "POST"
        return (is_proven or is_entered) and self.has_change_permission(request)

    def counts_before_deletion(self, row: Row) -> dict[str, int]:
        """Return the number of related rows that are deleted with the row, by kind, for the confirmation page."""
        return {}

    def get_form(self, request: HttpRequest, obj: Row | None = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002
        form = super().get_form(request, obj, change=change, **kwargs)
        form.refusal = getattr(request, "_refusal", None)
        # Django keeps fields that the form class declares, even if this page does not show them.
        shown = flatten_fieldsets(self.get_fieldsets(request, obj))
        # If the account may not change the row, Django reads the labels from `Meta`, not from the fields of the form class.
        declared = {name: field.label for name, field in form.base_fields.items() if field.label}
        form._meta.labels = {**declared, **(form._meta.labels or {})}
        form.base_fields = {name: field for name, field in form.base_fields.items() if name in shown}
        return form

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Save in one transaction, which is repeated after a deadlock. After a refusal, show the same input with its errors."""
        view = super().changeform_view
        if self.wants_proof(request, object_id) and (asked := asked_for_proof(request)) is not None:
            return asked
        if request.method != "POST":
            return view(request, object_id, form_url, extra_context)
        try:
            return unit_of_work(view)(request, object_id, form_url, extra_context)
        except refusals() as refusal:
            request._refusal = refusal  # type: ignore[attr-defined]
        return view(request, object_id, form_url, extra_context)

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Show the values of the form as text to staff who may not change the row. If the form was refused, the part of the
        page above the form shows the stored values of the row."""
        row = context.get("original")
        if row is not None and context["errors"]:
            # The form has already copied the refused values to `row`.
            row = context["original"] = self.get_object(request, str(row.pk))
        if row is not None and not self.has_change_permission(request, row):
            context["adminform"] = ReadableForm.of(context["adminform"])
        return super().render_change_form(request, context, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Row, form: Any, change: bool) -> None:  # noqa: FBT001
        if change:
            self.change(request, obj, form)
            return
        created = self.create(request, form)
        # Django uses the instance of the form for the history, the message and the redirect.
        obj.__dict__.update(created.__dict__)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Delete the row after a confirmation.

        Opens no transaction, because the service may need several transactions and repeats a failed one.
        """
        row = self.get_object(request, unquote(object_id))
        if not self.has_delete_permission(request, row):
            raise PermissionDenied
        if request.method == "POST":
            return self._deleted(request, row)
        shown = {
            "object": row,
            "heading": self.heading_of(row),
            "kind": self.kind_of_row,
            "effect": self.deletion_effect,
            "counts": self.counts_before_deletion(row),
            "back_url": place_to_return_to(request) or self._address_of(quote(row.pk)),
            **(extra_context or {}),
        }
        return page_beside(self, request, "admin/delete_row.html", f"Delete {self.opts.verbose_name}?", **shown)

    def _deleted(self, request: HttpRequest, row: Row) -> HttpResponse:
        place = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}"
        key, text = row.pk, self.heading_of(row)
        try:
            job = self._remove_and_note(request, row)
        except refusals() as refusal:
            self.message_user(request, as_text(refusal), messages.ERROR)
            return HttpResponseRedirect(place_to_return_to(request) or reverse(f"{place}_change", args=(quote(key),)))
        if job is None:
            self.message_user(request, f"The {self.opts.verbose_name} {text} was deleted.", messages.SUCCESS)
        else:
            self.say_it_goes_on(request, text, job)
        return HttpResponseRedirect(place_to_return_to(request) or reverse(f"{place}_changelist"))

    def response_post_save_change(self, request: HttpRequest, obj: Row) -> HttpResponseRedirect:
        """Return to the page from which the form was opened, such as a tab; otherwise to the list."""
        asked = place_to_return_to(request)
        return HttpResponseRedirect(asked) if asked else super().response_post_save_change(request, obj)

    def say_it_goes_on(self, request: HttpRequest, text: str, job: Job) -> None:
        """Add a message that a job continues the deletion of a row, with a link to the job."""
        page = reverse(f"{self.admin_site.name}:identity_job_change", args=(quote(job.pk),))
        said = format_html('The {} {} is being deleted: <a href="{}">job {}</a>.', self.opts.verbose_name, text, page, job.pk)
        self.message_user(request, said, messages.SUCCESS)

    def _remove_and_note(self, request: HttpRequest, row: Row) -> Job | None:
        # The audit entry needs the key, which a deleted row no longer has.
        noted = copy(row)
        job = self.remove(request, row)
        self.log_deletions(request, [noted])
        return job
