"""Records the changes of staff in the audit log: one entry per row if the model is watched, otherwise one entry for the action.

Replaces Django's own admin log, which is not written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import ModelAdmin
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.db import models
from django.http import HttpRequest, HttpResponse

from foundation.acting import said
from foundation.admin.field_labels import column_label
from identity.audit.entries import is_noted, record
from identity.models import AuditEntry

_HISTORY_SHOWN = 100


Row = TypeVar("Row", bound=models.Model)

if TYPE_CHECKING:

    class _ModelAdmin(ModelAdmin[Row]):
        """The base class for the type checker."""
else:

    class _ModelAdmin(ModelAdmin):
        """The base class at run time. Django's `ModelAdmin` takes a type parameter in stubs only."""

        def __class_getitem__(cls, _model: object) -> type:
            return cls


class Noting(_ModelAdmin[Row]):
    """Writes the audit log instead of Django's admin log."""

    object_history_template = "admin/row_history.html"

    def log_addition(self, request: HttpRequest, obj: models.Model, message: Any) -> Any:
        if not is_noted(obj):
            record(f"Added {self.opts.verbose_name}", about=obj)

    def log_change(self, request: HttpRequest, obj: models.Model, message: Any) -> Any:
        """Record the change, unless the present act already has an entry about the row. Django's message is empty if no field changed."""
        if message and not is_noted(obj):
            record(message if isinstance(message, str) else f"Changed {self.opts.verbose_name}", about=obj)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for row in queryset:
            if not is_noted(row):
                record(f"Deleted {self.opts.verbose_name}", about=row)

    def response_action(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> Any:  # type: ignore[override]  # as Django calls it
        """Run a list action. Audit entries contain its label, and the reason from its confirmation page."""
        if not all(_is_key(self.opts.pk, text) for text in request.POST.getlist(ACTION_CHECKBOX_NAME)):
            text = "The selection is invalid. Nothing was changed. Open the list again and select the rows."
            self.message_user(request, text, messages.WARNING)
            return None
        chosen = self.get_actions(request).get(_pressed(request))
        label = str(chosen[2] % {"verbose_name_plural": self.opts.verbose_name_plural}) if chosen else ""
        with said(label, request.POST.get("reason", "").strip()):
            return super().response_action(request, queryset)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the audit entries of the row, newest first."""
        about = AuditEntry.objects.filter(object_type=self.opts.label_lower, object_id=unquote(object_id)).order_by("-at", "-pk")
        entries = [(entry, _changed_columns(entry)) for entry in about[:_HISTORY_SHOWN]]
        return super().history_view(request, object_id, {"entries": entries, **(extra_context or {})})


def _pressed(request: HttpRequest) -> str:
    """Return the action that Django runs if a form submits several: the action at `index`, or the last one if `index` is too large."""
    names = request.POST.getlist("action")
    try:
        return names[int(request.POST.get("index", 0))]
    except ValueError:
        return names[0] if names else ""
    except IndexError:
        return names[-1] if names else ""


def _is_key(column: Any, text: str) -> bool:
    """Tell whether the text is a valid key. An invalid key would cause a database error."""
    column = column.target_field if column.is_relation else column
    try:
        column.run_validators(column.to_python(text))
    except ValidationError:
        return False
    return "\0" not in text


def _changed_columns(entry: AuditEntry) -> str:
    names = (entry.after or {}) if entry.kind == AuditEntry.Kind.CHANGE else {}
    return ", ".join(column_label(entry.object_type, name) for name in names)
