"""Admin pages of actions. Secrets are write-only: an empty field keeps the stored secret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.http import urlencode

from events.models import EventStream
from foundation.admin.badges import badge, json_block
from foundation.admin.json_fields import pretty
from foundation.admin.list_filters import RecentValuesFilter, worded
from foundation.admin.panels import Cell, Panel
from foundation.admin.secret_rows import has_entries
from identity.admin.assurance import is_proven
from identity.admin.object_actions import Caution, ObjectAction
from identity.admin.service_admin import ServiceAdmin
from identity.admin.tenant_scope import ReadOnlyAdmin
from provisioning.admin.action_form import OPTIONS, SECRETS, TEMPLATES, ActionForm
from provisioning.admin.mapping_editor import mapping_view
from provisioning.admin.trial_pages import connection_test_view, event_run_view, user_run_view
from provisioning.models import Action, ActionSecret
from provisioning.models.actions import SCIM_USER_PROVISIONING
from provisioning.runs.failures import Misconfigured
from provisioning.scim import settings as scim
from provisioning.scim.profiles import PROFILES
from provisioning.services import action_versions, action_warnings, actions

_SHOWN = 5
# Values of the field for secrets if a form does not show the field, or if the field is empty.
_NOTHING = ("", "{}", "null")


@dataclass(frozen=True)
class _Page:
    """A page that configures or tests an action. Most pages support the SCIM template only."""

    label: str
    view: Callable[..., HttpResponse]
    is_for_entry_points: bool = False

    def fits(self, action: Action) -> bool:
        return self.is_for_entry_points is (action.template != SCIM_USER_PROVISIONING)


_PAGES = {
    "mapping": _Page("Mapping", mapping_view),
    "connection-test": _Page("Test connection", connection_test_view),
    "user-run": _Page("Run for one user", user_run_view),
    "event-run": _Page("Run for a test event", event_run_view, is_for_entry_points=True),
}


def _deploy(_request: HttpRequest, action: Action, _values: dict[str, Any]) -> str:
    actions.deploy_action(tenant_id=action.tenant_id, action_id=action.pk)
    bound = EventStream.objects.of(action.tenant_id).filter(destination__action_id=str(action.pk), held_since__isnull=False)
    held = [stream.name or stream.pk for stream in bound.order_by("name", "pk")[:_SHOWN]]
    if held:
        return Caution(
            f"Action deployed. Deliveries wait, because these event streams are held: {', '.join(held)}. Resume them to deliver."
        )
    return "Action deployed. Deliveries run the new version from now on. You can now add an event stream that runs the action."


def _explain_deploying(_request: HttpRequest, action: Action) -> str:
    deployed = actions.deployed_version(action)
    if deployed is None:
        return "Creates the first version of the action from the draft. After this, you can add an event stream that runs the action."
    return f"Creates a new version from the draft. Deliveries then run the new version instead of version {deployed.number}."


def _has_undeployed_changes(action: Action) -> bool:
    return not action_versions.is_draft_deployed(action, actions.deployed_version(action))


def _about_secrets(request: HttpRequest, *, is_open: bool) -> str:
    if is_open:
        return "A change takes effect when you deploy the action."
    place = f"{reverse('admin:prove')}?{urlencode({'next': request.get_full_path()})}"
    return format_html('<a href="{}">Confirm your identity</a> to change these values.', place)


class ActionAdmin(ServiceAdmin[Action]):
    form = ActionForm
    id_field = "id"
    first_tab = "Settings"
    grows = False
    list_display = ("name", "template_in_words", "is_deployed", "status_badge", "updated_at", "tenant")
    list_filter = (("template", worded(RecentValuesFilter, TEMPLATES)), "is_deployed")
    list_select_related = ("tenant",)
    sortable_by = ("name", "updated_at")
    search_fields = ("name", "=id")
    readonly_fields = (
        "id",
        "template_in_words",
        "status_badge",
        "deployment",
        "known_secrets",
        "worst_case",
        "server_notes",
        "mapping_text",
        "capabilities_text",
        "built_at",
        "created_at",
        "updated_at",
    )
    proof_for = frozenset({"add"})
    empty_text = "No actions yet. Add an action, deploy it, then add an event stream that runs the action."
    deletion_effect = (
        "The versions and secrets of the action are deleted as well. The action cannot be deleted while an event stream runs it."
    )
    object_actions = (
        ObjectAction(
            name="deploy",
            label="Deploy",
            explain=_explain_deploying,
            run=_deploy,
            is_offered=_has_undeployed_changes,
        ),
    )

    def __init__(self, model: type[Action], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self.tabs = {"Versions": [self.versions_of], "Tests": [self.trials_of]}

    def get_urls(self) -> list[URLPattern]:
        own = [
            path(f"<path:object_id>/{name}/", self.admin_site.admin_view(self._page_of(page)), name=f"provisioning_action_{name}")
            for name, page in _PAGES.items()
        ]
        return [*own, *super().get_urls()]

    def _page_of(self, own: _Page) -> Callable[..., HttpResponse]:
        def page(request: HttpRequest, object_id: str) -> HttpResponse:
            action = self.get_object(request, unquote(object_id))
            if not own.fits(action):
                raise Http404
            return own.view(self, request, action)

        return page

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Add links to the pages that configure and test the action."""
        response = super().render_change_form(request, context, *args, **kwargs)
        action = context.get("original")
        if action is not None and self.has_change_permission(request, action):
            place = f"{self.admin_site.name}:provisioning_action"
            links = [
                {"name": name, "label": page.label, "url": reverse(f"{place}_{name}", args=(quote(action.pk),)), "is_dangerous": False}
                for name, page in _PAGES.items()
                if page.fits(action)
            ]
            response.context_data["object_actions"] = [*links, *response.context_data.get("object_actions", [])]
            # While the draft has changes, the main button deploys them, because they have no effect until they are deployed. Otherwise the
            # main button opens the page of a test.
            test = "connection-test" if action.template == SCIM_USER_PROVISIONING else "event-run"
            response.context_data["primary_action"] = "deploy" if _has_undeployed_changes(action) else test
        return response

    def badge_of(self, row: Action) -> str:
        return self.deployment(row)

    def versions_of(self, _request: HttpRequest, action: Action) -> Panel:
        """Return the newest versions; each version has a page on which staff can deploy it again."""
        place = f"{self.admin_site.name}:provisioning_actionversion"
        newest = action.versions.order_by("-number").defer("secrets", "mapping")[:_SHOWN]
        rows = [
            (
                Cell(str(version), reverse(f"{place}_change", args=(version.pk,))),
                Cell(f"{version.created_at:%Y-%m-%d %H:%M}"),
                Cell("In use" if version.is_deployed else "Not in use"),
            )
            for version in newest
        ]
        more = f"{reverse(f'{place}_changelist')}?{urlencode({'q': str(action.pk)})}"
        empty = "Not deployed yet."
        columns = ("Version", "Created (UTC)", "State")
        return Panel("Versions", columns, rows, empty_text=empty, more_url=more, more_text="All versions")

    def trials_of(self, _request: HttpRequest, action: Action) -> Panel:
        """Return the newest trials."""
        place = f"{self.admin_site.name}:provisioning_trial"
        rows = [
            (
                Cell(f"{trial.started_at:%Y-%m-%d %H:%M}", reverse(f"{place}_change", args=(trial.pk,))),
                Cell(trial.get_kind_display()),
                Cell(trial.get_outcome_display()),
                Cell(trial.summary),
            )
            for trial in action.trials.order_by("-started_at").defer("steps")[:_SHOWN]
        ]
        more = f"{reverse(f'{place}_changelist')}?{urlencode({'q': str(action.pk)})}"
        columns = ("Started (UTC)", "Test", "Outcome", "Summary")
        return Panel("Tests", columns, rows, empty_text="No tests yet.", more_url=more, more_text="All tests")

    def get_fieldsets(self, request: HttpRequest, obj: Action | None = None) -> Any:
        """Return the fieldsets for the type of the action (template or entry point); for a new action, the fieldsets of both types."""
        is_scim = obj is None or obj.template == SCIM_USER_PROVISIONING
        options = [*(OPTIONS if is_scim else ()), *(["server_notes", "mapping_text"] if obj is not None and is_scim else [])]
        own = [("Options", {"fields": options})] if is_scim else []
        if obj is None:
            first = ["name", "template", "entry_point"]
            foreign = ("Only for other installed code", {"fields": ["options", "other_secrets"], "classes": ["collapse"]})
            return [(None, {"fields": first}), ("Server", {"fields": [*SECRETS]}), *own, foreign]
        may_change = self.has_change_permission(request, obj)
        is_open = is_proven(request) or not may_change
        # Only stored secrets of the template can be removed here.
        removed = ["removed_secrets"] if is_scim and obj.secrets.filter(name__in=SECRETS).exists() else []
        inputs = [*(SECRETS if is_scim else ()), "other_secrets", *removed] if is_open and may_change else []
        secrets = ["known_secrets", *(["worst_case"] if is_scim else []), *inputs]
        source = ["template_in_words"] if is_scim else ["entry_point"]
        first = ["name", *source, "deployment", "status_badge", *([] if self.is_bound(request) else ["tenant"])]
        more = [*(["capabilities_text"] if is_scim else []), "built_at", "created_at", "updated_at"]
        foreign_options = [] if is_scim else [("Options", {"fields": ["options"]})]
        return [
            (None, {"fields": first}),
            ("Server" if is_scim else "Secrets", {"fields": secrets, "description": _about_secrets(request, is_open=is_open)}),
            *own,
            *foreign_options,
            ("More", {"fields": more, "classes": ["collapse"]}),
        ]

    def wants_proof(self, request: HttpRequest, object_id: str | None) -> bool:
        """Require a proof if the request contains secrets, even if the page was opened before the last proof expired."""
        names = (*SECRETS, "other_secrets", "removed_secrets")
        is_sent = request.method == "POST" and (
            any(request.POST.get(name, "").strip() not in _NOTHING for name in names) or has_entries(request.POST, "other_secrets")
        )
        return super().wants_proof(request, object_id) or (is_sent and self.has_change_permission(request))

    def get_readonly_fields(self, request: HttpRequest, obj: Action | None = None) -> Any:
        fixed = () if obj is None else ("template", "entry_point")
        return (*super().get_readonly_fields(request, obj), *fixed)

    @admin.display(description="Template")
    def template_in_words(self, row: Action) -> str:
        return TEMPLATES.get(row.template, row.template)

    @admin.display(description="Build")
    def status_badge(self, row: Action) -> str:
        return badge(row.get_status_display(), "good" if row.status == Action.Status.BUILT else "warn")

    @admin.display(description="Deployed")
    def deployment(self, row: Action) -> str:
        deployed = actions.deployed_version(row)
        if deployed is None:
            return badge("Not deployed", "warn")
        if action_versions.is_draft_deployed(row, deployed):
            return badge(f"Version {deployed.number}", "good")
        return badge(f"Version {deployed.number}; the draft has changes that are not deployed", "warn")

    @admin.display(description="Mapping")
    def mapping_text(self, row: Action) -> str:
        return "The default mapping." if row.mapping is None else f"A mapping of your own, with {len(row.mapping)} rows."

    @admin.display(description="Stored values")
    def known_secrets(self, row: Action) -> str:
        names = sorted(row.secrets.values_list("name", flat=True))
        told = f"Set: {', '.join(names)}." if names else "None."
        missing = [name for name in scim.REQUIRED if name not in names] if row.template == SCIM_USER_PROVISIONING else []
        if not missing:
            return told
        lacking = badge(f"Missing: {', '.join(missing)}", "warn")
        return format_html("{} {} The action cannot be deployed without them.", told, lacking)

    @admin.display(description="About the server")
    def server_notes(self, row: Action) -> str:
        """Return the notes of the server profile."""
        profile = PROFILES.get(row.options.get("server_profile", ""))
        notes = " ".join(profile.notes) if profile else ""
        return notes or "No notes on this kind of server."

    @admin.display(description="Longest possible run")
    def worst_case(self, row: Action) -> str:
        """Return a warning if a run with these secrets may exceed its budget."""
        try:
            warning = action_warnings.budget_warning_of(row)
        except Misconfigured as error:
            return badge(str(error), "bad")
        return format_html("{} {}", badge("Too long", "warn"), warning) if warning else "Shorter than the time limit of a run."

    @admin.display(description="Capabilities of the server")
    def capabilities_text(self, row: Action) -> str:
        return json_block(pretty(row.capabilities)) if row.capabilities else "Unknown. Test the connection to detect them."

    def create(self, request: HttpRequest, form: Any) -> Action:
        values = form.cleaned_data
        action = actions.create_action(
            tenant_id=self.tenant_for_new(request),
            name=values["name"],
            template=values["template"],
            entry_point_path=values["entry_point"],
            options=form.chosen_options(),
            secrets=form.secrets(),
        )
        self._warn(request, action)
        return action

    def change(self, request: HttpRequest, row: Action, form: Any) -> None:
        changes = form.changes(without=(*SECRETS, *OPTIONS, "options", "other_secrets", "removed_secrets"))
        if form.has_other_options():
            changes["options"] = form.chosen_options()
        secrets = form.secrets()
        if changes or secrets:
            action = actions.update_action(tenant_id=row.tenant_id, action_id=row.pk, changes=changes, secrets=secrets)
            self._warn(request, action)

    def _warn(self, request: HttpRequest, action: Action) -> None:
        for sentence in action_warnings.warnings_of(action):
            self.message_user(request, sentence, messages.WARNING)


class ActionSecretAdmin(ReadOnlyAdmin[ActionSecret]):
    """Names and times of secrets; their values stay sealed."""

    tenant_lookup = "action__tenant_id"
    grows = False
    list_display = ("name", "action", "updated_at")
    list_select_related = ("action",)
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("action", "name", "updated_at")
    empty_text = "No secrets yet. Enter the address and the token of a server on the page of an action."
