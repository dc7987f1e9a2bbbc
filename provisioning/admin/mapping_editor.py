"""The mapping table of an action as a form that works without scripts: rows can be reordered, removed and added."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.forms import BaseFormSet, formset_factory
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from foundation.admin.beside_rows import page_beside
from foundation.admin.shown_values import changed_since, digests_input
from foundation.expressions.language import MAX_CHARACTERS
from identity.admin.refusals import as_text, refusals
from identity.services.failures import Invalid
from provisioning.actions.setups import draft_setup
from provisioning.admin.function_help import FUNCTIONS
from provisioning.mapping.table import DEFAULT_TABLE, MAX_ROWS
from provisioning.models import Action
from provisioning.runs.failures import Misconfigured
from provisioning.services.action_warnings import warnings_of
from provisioning.services.actions import update_action
from provisioning.trials.mapping_preview import Preview, mapping_preview

# A guided setup opens the page with this query parameter. If the parameter is set, saving leads back to the setup.
FROM_SETUP = "setup"
_MORE_ROWS = 3
_PLACE = re.compile(r"mapping(?:\[(\d+)\])?(?:\.(\w+))?")
_DEFAULT_ROWS = [asdict(row) for row in DEFAULT_TABLE]


def _text(size: int) -> forms.TextInput:
    return forms.TextInput(attrs={"size": size, "spellcheck": "false", "autocomplete": "off"})


class MappingRowForm(forms.Form):
    """The form of one row of the mapping.

    The service layer validates the row, so that the management interface and this page have the same rules.
    """

    path = forms.CharField(max_length=MAX_CHARACTERS, strip=True, widget=_text(38), label="SCIM path")
    source = forms.CharField(max_length=MAX_CHARACTERS, strip=True, widget=_text(38), label="Expression")
    when = forms.ChoiceField(
        choices=[("both", "create and update"), ("create", "create"), ("update", "update")], initial="both", label="Applies to"
    )
    if_empty = forms.ChoiceField(choices=[("omit", "leave out"), ("remove", "remove"), ("error", "fail")], initial="omit", label="If empty")
    enabled = forms.BooleanField(required=False, initial=True)


class PreviewForm(forms.Form):
    """The form of the preview: the user, and the option that enables the Enterprise User extension."""

    enterprise = forms.BooleanField(
        required=False,
        label="Enterprise User extension",
        help_text="Enables all rows of this extension, such as “department” and “manager”. The choice is saved with the draft.",
    )
    user = forms.CharField(required=False, max_length=320, label="User for the preview", help_text="A user id or an email address.")
    operation = forms.ChoiceField(
        required=False, choices=[("update", "update an account"), ("create", "create an account")], label="Request for the preview"
    )


MappingFormSet = formset_factory(
    MappingRowForm, extra=_MORE_ROWS, can_order=True, can_delete=True, max_num=MAX_ROWS + _MORE_ROWS, absolute_max=MAX_ROWS + 20
)


def mapping_view(model_admin: Any, request: HttpRequest, action: Action) -> HttpResponse:
    """Show the table of the draft. On POST, save the table, preview it for a user, add rows, or restore the default table."""
    if not model_admin.has_change_permission(request, action):
        raise PermissionDenied
    if request.method != "POST":
        rows = _DEFAULT_ROWS if action.mapping is None else action.mapping
        numbered = [{**row, "ORDER": number} for number, row in enumerate(rows, start=1)]
        asked = PreviewForm(initial={"enterprise": action.options.get("enterprise", False)})
        return _page(model_admin, request, action, MappingFormSet(initial=numbered, prefix="rows"), asked)
    if "reset" in request.POST:
        update_action(tenant_id=action.tenant_id, action_id=action.pk, changes={"mapping": None})
        return _saved(model_admin, request, action, "The draft has the default mapping again.")
    table, asked = MappingFormSet(_data(request), prefix="rows"), PreviewForm(request.POST)
    shown: Preview | None = None
    if "more" not in request.POST and table.is_valid() and asked.is_valid():
        forms_in_order = _kept(table)
        try:
            if "preview" in request.POST:
                shown = _preview(action, forms_in_order, asked.cleaned_data)
            else:
                _refuse_if_stale(request, action)
                warnings = _save(action, forms_in_order, enterprise=asked.cleaned_data["enterprise"])
                told = "" if FROM_SETUP in request.GET else " Deploy the action to use the mapping."
                return _saved(model_admin, request, action, f"The mapping is saved in the draft.{told}", warnings)
        except Misconfigured as error:
            asked.add_error(None, str(error))
        except refusals() as refusal:
            _show(refusal, forms_in_order, asked)
    return _page(model_admin, request, action, table, asked, shown)


def _data(request: HttpRequest) -> Any:
    """Return the posted data, with more empty rows if requested."""
    data = request.POST.copy()
    sent = str(data.get("rows-TOTAL_FORMS", ""))
    if "more" in data and sent.isdecimal() and len(sent) <= 3:
        total = min(int(sent) + _MORE_ROWS, MAX_ROWS + _MORE_ROWS)
        data["rows-TOTAL_FORMS"] = str(total)
        for number in range(int(sent), total):
            data[f"rows-{number}-enabled"] = "on"
            data[f"rows-{number}-when"], data[f"rows-{number}-if_empty"] = "both", "omit"
    return data


def _kept(table: BaseFormSet[MappingRowForm]) -> list[MappingRowForm]:
    """Return the rows that are not removed, ordered by number; rows without a number come last."""
    return [form for form in table.ordered_forms if form.has_changed() or form.initial]


def _rows(kept: list[MappingRowForm]) -> list[dict[str, Any]]:
    return [{name: form.cleaned_data[name] for name in MappingRowForm.base_fields} for form in kept]


def _refuse_if_stale(request: HttpRequest, action: Action) -> None:
    """Raise `Invalid` if the saved mapping has changed since the page was opened."""
    if changed_since(request.POST, {"mapping": action.mapping}):
        problem = "The mapping has changed since you opened the page. To replace the saved mapping with this table, save again."
        raise Invalid({"": [problem]})


def _save(action: Action, kept: list[MappingRowForm], *, enterprise: bool) -> list[str]:
    """Save the table; return warnings about the draft."""
    rows = _rows(kept)
    changes: dict[str, Any] = {"mapping": None if rows == _DEFAULT_ROWS else rows}
    if enterprise != action.options.get("enterprise", False):
        changes["options"] = {**action.options, "enterprise": enterprise}
    return warnings_of(update_action(tenant_id=action.tenant_id, action_id=action.pk, changes=changes))


def _preview(action: Action, kept: list[MappingRowForm], asked: Mapping[str, Any]) -> Preview:
    if not asked["user"]:
        raise Invalid({"user": ["Enter the user for whom the preview shows the request."]})
    return mapping_preview(
        draft_setup(action),
        user_id=asked["user"],
        operation=asked["operation"] or "update",
        mapping=_rows(kept),
        enterprise=asked["enterprise"],
    )


def _show(refusal: Exception, kept: list[MappingRowForm], asked: PreviewForm) -> None:
    """Show each problem at its row and field, and all problems without a row above the table."""
    problems = refusal.errors if isinstance(refusal, Invalid) else {"user": [as_text(refusal)]}
    for place, texts in problems.items():
        found = _PLACE.fullmatch(place)
        if found and found[1] and int(found[1]) < len(kept):
            kept[int(found[1])].add_error(found[2] if found[2] in MappingRowForm.base_fields else None, texts)
        else:
            asked.add_error(place if place in asked.fields else None, texts)


def _saved(model_admin: Any, request: HttpRequest, action: Action, text: str, warnings: Iterable[str] = ()) -> HttpResponse:
    model_admin.log_change(request, action, "Mapping")
    model_admin.message_user(request, text, messages.SUCCESS)
    for warning in warnings:
        model_admin.message_user(request, warning, messages.WARNING)
    return HttpResponseRedirect(_back(model_admin, request, action) if FROM_SETUP in request.GET else request.path)


def _back(model_admin: Any, request: HttpRequest, action: Action) -> str:
    """Return the address of the page that led here: the step of a guided setup, or the page of the action."""
    site = model_admin.admin_site.name
    if FROM_SETUP in request.GET:
        return reverse(f"{site}:provisioning_connect_preview", kwargs={"action_id": action.pk})
    return reverse(f"{site}:provisioning_action_change", args=(quote(action.pk),))


def _page(
    model_admin: Any, request: HttpRequest, action: Action, table: Any, asked: PreviewForm, shown: Preview | None = None
) -> HttpResponse:
    context = {
        "original": action,
        "table": table,
        "asked": asked,
        "preview": shown,
        "shown_values": digests_input({"mapping": action.mapping}),
        "preview_body": shown.body.decode() if shown else "",
        "functions": FUNCTIONS,
        "is_default": action.mapping is None,
        "back_url": _back(model_admin, request, action),
    }
    return page_beside(model_admin, request, "admin/action_mapping.html", f"Mapping of {action.name}", **context)
