"""Actions on the page of one row. Each action opens a page that explains its effect, or a form on a tab. Only a submitted form runs the
action."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from django.utils.text import slugify

from foundation.acting import said
from foundation.admin.beside_rows import page_beside
from foundation.admin.panels import Panel, PanelForm, Tab
from foundation.admin.returning import place_to_return_to
from foundation.database.transactions import unit_of_work
from identity.admin.assurance import asked_for_proof
from identity.admin.object_links import ObjectLink
from identity.admin.refusals import add_to_form, refusals
from identity.admin.row_forms import RowForm
from identity.admin.scope import is_operator, staff_of
from identity.admin.tenant_scope import TenantScopedAdmin
from identity.audit.entries import image_of, is_noted, record

Row = TypeVar("Row", bound=models.Model)
_TAB = "tab"
PanelOf: TypeAlias = Callable[[HttpRequest, Row], Panel | None]


class Caution(str):
    """A message after an action whose effect has not begun or is not complete. The page shows the message as a warning."""

    __slots__ = ()


class NoInput(forms.Form):
    """The form of an action that needs only the confirmation."""


def _always(_row: Any) -> bool:
    return True


@dataclass(frozen=True)
class ObjectAction:
    """One button.

    `explain` returns the sentence shown before the confirmation. `run` calls a service and returns the message for the next page. `run` can
    return a response instead, such as a page with a new secret, because a secret must not be stored in a message. Refusals of the service
    become errors of the form. `is_offered` tells for which rows the page shows the button. `permission` is the required permission, or a
    function that returns the permission for a row; the default is the permission to change such rows.
    """

    name: str
    label: str
    explain: Callable[[HttpRequest, Any], str]
    run: Callable[[HttpRequest, Any, dict[str, Any]], str | HttpResponse]
    is_offered: Callable[[Any], bool] = _always
    form_class: type[forms.Form] = NoInput
    is_dangerous: bool = False
    for_operators_only: bool = False
    permission: str | Callable[[Any], str] = ""
    # True if the action shows or changes secrets, or ends a tenant: then the session needs a recent proof.
    needs_proof: bool = False
    # For an action that adds a row to a table on a tab: the label of the tab. The form is above the table.
    tab: str = ""
    # For an action with a tab: the permission to see the table of the tab. If it is set, the head of the page has a link to the form.
    table_permission: str = ""

    @property
    def first_field(self) -> str:
        """The id of the first field of a form on a tab. A link to this id sets the focus on the field."""
        return f"id_{self.name}-{next(iter(self.form_class.base_fields))}"

    def form_for(self, request: HttpRequest, row: Any, data: QueryDict | None = None) -> forms.Form:
        """Return the form of the action on this row."""
        form = self.form_class(data, prefix=self.name if self.tab else None)
        if isinstance(form, RowForm):
            form.fit(request, row)
        return form


def button(name: str, label: str, url: str, *, is_dangerous: bool = False) -> dict[str, Any]:
    """Return an entry of the head of a page, as the template needs it."""
    return {"name": name, "label": label, "url": url, "is_dangerous": is_dangerous}


@unit_of_work
def _run_and_note(request: HttpRequest, row: Any, action: ObjectAction, values: dict[str, Any]) -> str | HttpResponse:
    """Run the action. In the same transaction, write an audit entry about it, unless the change of a row has already caused an entry."""
    noted, before = copy(row), image_of(row)
    done = action.run(request, row, values)
    if not is_noted(noted):
        record(action.label, about=noted, before=before, after=image_of(noted))
    return done


class ObjectActionsAdmin(TenantScopedAdmin[Row]):
    """Adds the buttons of `object_actions` and panels of related rows to the page of a row."""

    object_actions: Sequence[ObjectAction] = ()
    # The name of the primary action, which the page shows as a button. All other actions are in a menu. A subclass that
    # chooses the action for each row overrides `primary_of`.
    primary_action: str = ""
    # The label of the tab with the form, where the page has tabs.
    first_tab: str = "Details"
    # The label of the tab with the last events, where the page has tabs.
    events_tab: str = "Events"
    # Whether the menu has a link to the changes of the row in the audit log.
    has_history: bool = True
    # The field with the public identifier of the row. The page shows the identifier with a button that copies it.
    id_field: str = ""

    def __init__(self, model: type[Row], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        # Tables below the form. Apps that depend on this app add tables, too. A function returns None if the row has no such table.
        self.panels: list[PanelOf[Row]] = []
        # Tables that have their own tabs, by the label of the tab. Only the tables of the tab that is shown are read.
        self.tabs: dict[str, list[PanelOf[Row]]] = {}
        # Links to other pages about the row, after the actions. Apps that depend on this app add links, too.
        self.object_links: list[ObjectLink] = []

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_action"
        own = path("<path:object_id>/do/<slug:action_name>/", self.admin_site.admin_view(self.action_view), name=name)
        return [own, *super().get_urls()]

    def may_act(self, request: HttpRequest, row: Row, action: ObjectAction) -> bool:
        """Tell whether this account may use the action on this row now."""
        staff = staff_of(request)
        if staff is None or not self.has_view_permission(request, row) or not staff.has_perm(self._permission_for(row, action)):
            return False
        return (not action.for_operators_only or is_operator(request)) and action.is_offered(row)

    def _permission_for(self, row: Row, action: ObjectAction) -> str:
        needed = action.permission(row) if callable(action.permission) else action.permission
        return needed or f"{self.opts.app_label}.change_{self.opts.model_name}"

    def action_view(self, request: HttpRequest, object_id: str, action_name: str) -> HttpResponse:
        """Show the effect of the action. On POST, run it and redirect to the row, or to the list if the row is gone."""
        row = self.get_object(request, unquote(object_id))
        action = next((known for known in self.object_actions if known.name == action_name), None)
        if action is None:
            raise Http404
        if not self.may_act(request, row, action):
            raise PermissionDenied
        if action.needs_proof and (asked := asked_for_proof(request)) is not None:
            return asked
        form = action.form_for(request, row, request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            answer = self._answer_of(request, row, action, form)
            if answer is not None:
                return answer
        if request.method == "POST" and action.tab:
            return self._tab_with(request, row, action, form)
        back_url = place_to_return_to(request) or self._address_of(quote(row.pk), action.tab)
        explanation = action.explain(request, row)
        shown = {"explanation": explanation, "action": action, "form": form, "original": row, "back_url": back_url}
        return page_beside(self, request, "admin/object_action.html", action.label, **shown)

    def _answer_of(self, request: HttpRequest, row: Row, action: ObjectAction, form: forms.Form) -> HttpResponse | None:
        """Run the action and return its response. If the service refuses, add the errors to the form and return None."""
        # Compute this before the action: a deleted row may lose its key.
        key = quote(str(row.pk))
        try:
            with said(action.label, str(form.cleaned_data.get("reason") or "")):
                done = _run_and_note(request, row, action, form.cleaned_data)
        except refusals() as refusal:
            add_to_form(form, refusal)
            return None
        if isinstance(done, HttpResponse):
            return done
        self.message_user(request, done, messages.WARNING if isinstance(done, Caution) else messages.SUCCESS)
        if action.tab:
            return HttpResponseRedirect(self._address_of(key, action.tab))
        return HttpResponseRedirect(self._place_after(request, key))

    def _address_of(self, object_id: str, tab: str = "") -> str:
        """Return the URL of a row's page, or of its tab with the label `tab`."""
        place = reverse(f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_change", args=(object_id,))
        return f"{place}?{urlencode({_TAB: slugify(tab)})}" if tab else place

    def _tab_with(self, request: HttpRequest, row: Row, action: ObjectAction, refused: forms.Form) -> HttpResponse:
        """Return the tab of the action, with the refused form at the head of its table."""
        shown: Any = copy(request)
        shown.method, shown.resolver_match = "GET", request.resolver_match
        shown.path = shown.path_info = self._address_of(quote(row.pk))
        shown.GET = QueryDict(urlencode({_TAB: slugify(action.tab)}))
        shown._refused_form = (action.name, refused)
        response: HttpResponse = self.change_view(shown, quote(str(row.pk)))
        return response

    def _place_after(self, request: HttpRequest, object_id: str) -> str:
        if asked := place_to_return_to(request):
            return asked
        place = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}"
        if self.get_queryset(request).filter(pk=unquote(object_id)).exists():
            return reverse(f"{place}_change", args=(object_id,))
        return reverse(f"{place}_changelist")

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        row = context.get("original")
        if row is not None:
            tabs = self._tabs_of(request)
            is_first = not tabs or tabs[0].is_current
            shown = self.panels if is_first else next(self.tabs[tab.label] for tab in tabs if tab.is_current)
            context |= {
                "title": self.heading_of(row),
                "subtitle": None,
                "kind": self.kind_of_row,
                "badge": self.badge_of(row),
                "public_id": getattr(row, self.id_field) if self.id_field else "",
                "object_actions": self.buttons_of(request, row),
                "primary_action": self.primary_of(row),
                "has_history": self.has_history,
                # With tabs, the head of the page needs a link that deletes the row: only one tab shows the form with the delete button.
                "delete_url": self._delete_address(request, row) if tabs else "",
                "tabs": tabs,
                "is_form_shown": is_first,
                "panels": [self._with_form(request, row, panel) for panel_of in shown if (panel := panel_of(request, row)) is not None],
            }
        return super().render_change_form(request, context, *args, **kwargs)

    def _with_form(self, request: HttpRequest, row: Row, panel: Panel) -> Panel:
        """Return the panel. If the account may add a row to the panel's table, the panel has the form that adds it."""
        action = next((known for known in self.object_actions if panel.adds and known.name == panel.adds), None)
        if action is None or not self.may_act(request, row, action):
            return panel
        name, refused = getattr(request, "_refused_form", ("", forms.Form()))
        place = reverse(f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_action", args=(quote(row.pk), action.name))
        form = refused if name == action.name else action.form_for(request, row)
        return replace(panel, form=PanelForm(form, place, action.label))

    def primary_of(self, row: Row) -> str:
        """Return the name of the primary action of this row, which its page shows as a button."""
        return self.primary_action

    def buttons_of(self, request: HttpRequest, row: Row) -> list[dict[str, Any]]:
        """Return the actions that this account may use on the row now: the name, label and URL of each, and whether it is dangerous.

        Links to the forms on other tabs are first, and links to other pages are last.
        """
        place = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_action"
        acts = [action for action in self.object_actions if not action.tab and self.may_act(request, row, action)]
        return [
            *self._forms_of_tabs(request, row),
            *(button(act.name, act.label, reverse(place, args=(quote(row.pk), act.name)), is_dangerous=act.is_dangerous) for act in acts),
            *(
                button(link.name, link.label, address)
                for link in self.object_links
                if link.is_for(request) and (address := link.address(row))
            ),
        ]

    def _forms_of_tabs(self, request: HttpRequest, row: Row) -> list[dict[str, Any]]:
        """Return links to the forms of other tabs. The current tab shows its form already."""
        shown = next((tab.label for tab in self._tabs_of(request) if tab.is_current), "")
        return [
            button(action.name, action.label, f"{self._address_of(quote(row.pk), action.tab)}#{action.first_field}")
            for action in self.object_actions
            if action.table_permission
            and action.tab != shown
            and request.user.has_perm(action.table_permission)
            and self.may_act(request, row, action)
        ]

    def _delete_address(self, request: HttpRequest, row: Row) -> str:
        """Return the URL of the page that deletes the row; empty without the permission."""
        place = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_delete"
        return reverse(place, args=(quote(row.pk),)) if self.has_delete_permission(request, row) else ""

    def _tabs_of(self, request: HttpRequest) -> list[Tab]:
        """Return the tabs of a row's page, first the tab with the form. Empty if the page has only the form."""
        if not self.tabs:
            return []
        kept = {name: str(value) for name, value in request.GET.items() if name != _TAB}
        asked = request.GET.get(_TAB, "") if request.method == "GET" else ""
        slugs = {slugify(label): label for label, panels in self.tabs.items() if panels}
        here = request.path
        first = Tab(self.first_tab, f"{here}?{urlencode(kept)}", asked not in slugs)
        return [first, *(Tab(label, f"{here}?{urlencode({**kept, _TAB: slug})}", asked == slug) for slug, label in slugs.items())]
