"""Pages that test an action: connection, one user, test event. Each page shows the result below its form."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from events.record.catalogue import EVENT_TYPES
from foundation.admin.badges import Tone, badge
from foundation.admin.beside_rows import page_beside
from foundation.admin.json_fields import ShapedJSONField, pretty
from identity.admin.refusals import add_to_form, refusals
from identity.admin.scope import actor_of
from provisioning.actions.setups import deployed_setup, draft_setup
from provisioning.models import Action, Trial
from provisioning.runs.failures import Misconfigured
from provisioning.trials.connection_test import run_connection_test
from provisioning.trials.event_trials import run_for_event
from provisioning.trials.trials import TrialReport
from provisioning.trials.user_run import run_for_user

_TONES: dict[str, Tone] = {"ok": "good", "warning": "warn", "failed": "bad", "skipped": "quiet"}


class ConnectionTestForm(forms.Form):
    with_write_check = forms.BooleanField(
        required=False,
        label="With a write check",
        help_text="The test also creates a test user on the server, changes and reads this user in each update mode, and deletes the user. "
        "The result recommends an update mode.",
    )


class UserRunForm(forms.Form):
    user = forms.CharField(max_length=320, label="User", help_text="A user id or an email address.")
    draft = forms.BooleanField(
        required=False,
        label="Use the draft",
        help_text="Runs the draft instead of the deployed version. Possible only for a dry run.",
    )
    write = forms.BooleanField(
        required=False,
        label="Write to the server",
        help_text="If this is off, nothing is written: a dry run shows the changes.",
    )


class EventRunForm(forms.Form):
    event_type = forms.ChoiceField(choices=[(name, name) for name in EVENT_TYPES], initial="user.updated", label="Event type")
    event_data = ShapedJSONField(
        label="Data of the event", help_text="A JSON object with the members “object” and “context”. Empty: sample data for the event type."
    )
    draft = forms.BooleanField(
        required=False,
        label="Use the draft",
        help_text="If this is off, the deployed version runs. If no version is deployed, the draft runs.",
    )


def connection_test_view(model_admin: Any, request: HttpRequest, action: Action) -> HttpResponse:
    """Test the connection of the draft."""

    def run(values: dict[str, Any]) -> TrialReport:
        return run_connection_test(draft_setup(action), actor=actor_of(request), with_write_check=values["with_write_check"])

    text = (
        "Tests whether the server in the draft accepts the token and meets the requirements of SCIM. Without the write check, the test "
        "only reads."
    )
    return _page(model_admin, request, action, "Test connection", text, ConnectionTestForm, run)


def user_run_view(model_admin: Any, request: HttpRequest, action: Action) -> HttpResponse:
    """Provision one user now, or show the changes in a dry run."""

    def run(values: dict[str, Any]) -> TrialReport:
        deployed = None if values["draft"] else deployed_setup(tenant_id=action.tenant_id, action_id=action.pk)
        setup = deployed or draft_setup(action)
        return run_for_user(setup, user_id=values["user"], actor=actor_of(request), dry_run=not values["write"])

    text = (
        "Provisions one user in the same way as a delivery, and shows each step. While events of the user wait for delivery, only a dry "
        "run is possible."
    )
    return _page(model_admin, request, action, "Run for one user", text, UserRunForm, run)


def event_run_view(model_admin: Any, request: HttpRequest, action: Action) -> HttpResponse:
    """Let a worker run the action for a test event."""

    def run(values: dict[str, Any]) -> Trial:
        deployed = None if values["draft"] else deployed_setup(tenant_id=action.tenant_id, action_id=action.pk)
        data = values["event_data"] or None
        setup = deployed or draft_setup(action)
        return run_for_event(setup, event_type=values["event_type"], data=data, actor=actor_of(request))

    text = (
        "A worker runs the action once, with the time limit of a delivery. The event is marked as a test and is not in the event log. "
        "The code of the action decides what it does with a test event."
    )
    return _page(model_admin, request, action, "Run for a test event", text, EventRunForm, run)


def _page(
    model_admin: Any, request: HttpRequest, action: Action, title: str, text: str, form_class: type[forms.Form], run: Any
) -> HttpResponse:
    if not model_admin.has_change_permission(request, action):
        raise PermissionDenied
    form = form_class(request.POST if request.method == "POST" else None)
    report: TrialReport | Trial | None = None
    if request.method == "POST" and form.is_valid():
        try:
            report = run(form.cleaned_data)
            model_admin.log_change(request, action, title)
        except Misconfigured as error:
            form.add_error(None, str(error))
        except refusals() as refusal:
            add_to_form(form, refusal)
    context = {
        "explanation": text,
        "original": action,
        "form": form,
        **report_context(report),
        "outbound_addresses": settings.OUTBOUND_ADDRESSES,
        "back_url": reverse(f"{model_admin.admin_site.name}:provisioning_action_change", args=(quote(action.pk),)),
    }
    return page_beside(model_admin, request, "admin/action_trial.html", title, **context)


def report_context(report: TrialReport | Trial | None) -> dict[str, Any]:
    """Return the template context of a run: its steps and the changes on the server."""
    steps = [_shown(step) for step in report.document["steps"]] if report else []
    return {"report": report, "steps": steps, "changes": _changes(report) if report else []}


def _shown(step: dict[str, Any]) -> dict[str, Any]:
    details = {name: value for name, value in step.get("details", {}).items() if name != "changes"}
    return {**step, "badge": badge(step["state"], _TONES[step["state"]]), "details_text": pretty(details) if details else ""}


def _changes(report: TrialReport | Trial) -> list[dict[str, Any]]:
    found = [change for step in report.document["steps"] for change in step.get("details", {}).get("changes", [])]
    return [{"path": change["path"], "before": _cell(change["before"]), "after": _cell(change["after"])} for change in found]


def _cell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else pretty(value)
