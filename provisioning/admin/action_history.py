"""Read-only admin pages of versions and trials of actions."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from foundation.admin.badges import Tone, badge, json_block
from foundation.admin.json_fields import pretty
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.people.labels import NamesUsers
from identity.admin.tenant_scope import ReadOnlyAdmin
from provisioning.admin.action_form import TEMPLATES
from provisioning.models import ActionVersion, Trial
from provisioning.services.actions import deploy_version

_TONES: dict[str, Tone] = {Trial.Outcome.PASSED: "good", Trial.Outcome.FAILED: "bad", Trial.Outcome.LOST: "warn"}


class RollbackForm(forms.Form):
    update_draft = forms.BooleanField(
        required=False,
        label="Also copy this version into the draft",
        help_text="If this is off, the draft does not change. The draft then differs from the version that deliveries run.",
    )


def _deploy_again(_request: HttpRequest, version: ActionVersion, values: dict[str, Any]) -> str:
    made = deploy_version(
        tenant_id=version.action.tenant_id, action_id=version.action_id, version_id=version.pk, update_draft=values["update_draft"]
    )
    return f"Deployed as version {made.number}."


class ActionVersionAdmin(ReadOnlyAdmin[ActionVersion], ObjectActionsAdmin[ActionVersion]):
    """Deployed versions of actions. Secrets are shown by name only."""

    titled = "Version {row.number} of {row.action}"
    tenant_lookup = "action__tenant_id"
    grows = False
    list_display = ("__str__", "action", "is_deployed", "created_at")
    list_filter = ("is_deployed",)
    list_select_related = ("action",)
    sortable_by = ()
    ordering = ("-created_at", "-pk")
    search_fields = ("=id", "=action__id")
    search_help_text = "The id of a version or of an action."
    fields = (
        "action",
        "number",
        "is_deployed",
        "template_in_words",
        "entry_point",
        "options_text",
        "mapping_text",
        "secret_names",
        "created_at",
    )
    readonly_fields = ("template_in_words", "options_text", "mapping_text", "secret_names")
    empty_text = "No versions yet. When you deploy an action, a version is created."
    object_actions = (
        ObjectAction(
            name="deploy",
            label="Deploy this version",
            explain=lambda _request, version: (
                f"Creates a new version of {version.action} with the contents of version {version.number}, including its secrets. "
                "Deliveries will run the new version."
            ),
            run=_deploy_again,
            is_offered=lambda version: not version.is_deployed,
            form_class=RollbackForm,
        ),
    )

    def badge_of(self, row: ActionVersion) -> str:
        return badge("In use", "good") if row.is_deployed else badge("Not in use")

    @admin.display(description="Template")
    def template_in_words(self, row: ActionVersion) -> str:
        return TEMPLATES.get(row.template, row.template)

    @admin.display(description="Options")
    def options_text(self, row: ActionVersion) -> SafeString | str:
        return json_block(pretty(row.options)) if row.options else "None."

    @admin.display(description="Mapping")
    def mapping_text(self, row: ActionVersion) -> SafeString | str:
        return "The default mapping." if row.mapping is None else json_block(pretty(row.mapping))

    @admin.display(description="Secrets")
    def secret_names(self, row: ActionVersion) -> str:
        return ", ".join(row.sealed_secrets) or "None."


class TrialAdmin(NamesUsers, ReadOnlyAdmin[Trial]):
    """Trials of actions: actor, steps and outcome."""

    tenant_lookup = "action__tenant_id"
    grows = False
    user_column = "user_id"
    list_display = ("started_at", "kind", "outcome_badge", "action", "about_user", "actor", "summary")
    list_filter = ("kind", "outcome")
    list_select_related = ("action",)
    sortable_by = ()
    ordering = ("-started_at", "-pk")
    search_fields = ("=id", "=user_id", "=action__id")
    search_help_text = "The id of a test, a user or an action."
    fields = ("id", "action", "kind", "outcome_badge", "version", "about_user", "actor", "summary", "started_at", "ended_at", "steps_text")
    readonly_fields = ("outcome_badge", "about_user", "steps_text")
    empty_text = "No tests yet. To start a test, open an action and choose “Test connection” or “Run for one user”."

    def tenant_id_of(self, row: Trial) -> str:
        return row.action.tenant_id

    def badge_of(self, row: Trial) -> str:
        return self.outcome_badge(row)

    @admin.display(description="Outcome", ordering="outcome")
    def outcome_badge(self, row: Trial) -> SafeString:
        return badge(row.get_outcome_display(), _TONES.get(row.outcome, "quiet"))

    @admin.display(description="Steps")
    def steps_text(self, row: Trial) -> SafeString | str:
        return json_block(pretty(row.steps)) if row.steps else "No step has ended yet."
