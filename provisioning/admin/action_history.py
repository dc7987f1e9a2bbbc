"""Admin pages of what an action was and what was tried with it: versions and trials. Both are only ever read."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString

from identity.admin.badges import Tone, badge, json_block
from identity.admin.json_fields import pretty
from identity.admin.tenant_scope import ReadOnlyAdmin
from provisioning.models import ActionVersion, Trial

_TONES: dict[str, Tone] = {Trial.Outcome.PASSED: "good", Trial.Outcome.FAILED: "bad", Trial.Outcome.LOST: "warn"}


class ActionVersionAdmin(ReadOnlyAdmin[ActionVersion]):
    """What deliveries ran, and run. Of the secrets only the names are shown."""

    tenant_lookup = "action__tenant_id"
    list_display = ("__str__", "action", "is_deployed", "created_at")
    list_filter = ("is_deployed",)
    list_select_related = ("action",)
    sortable_by = ()
    ordering = ("-created_at", "-pk")
    search_fields = ("=id", "=action__id")
    search_help_text = "The id of a version or of an action."
    fields = ("action", "number", "is_deployed", "template", "entry_point", "options_text", "mapping_text", "secret_names", "created_at")
    readonly_fields = ("options_text", "mapping_text", "secret_names")
    empty_text = "No versions yet. Deploying an action makes one."

    @admin.display(description="Options")
    def options_text(self, row: ActionVersion) -> SafeString:
        return json_block(pretty(row.options))

    @admin.display(description="Mapping")
    def mapping_text(self, row: ActionVersion) -> SafeString | str:
        return "The default mapping." if row.mapping is None else json_block(pretty(row.mapping))

    @admin.display(description="Secrets")
    def secret_names(self, row: ActionVersion) -> str:
        return ", ".join(row.sealed_secrets) or "None was set."


class TrialAdmin(ReadOnlyAdmin[Trial]):
    """Connection tests and runs for one user: who asked, what was done, and how it ended."""

    tenant_lookup = "action__tenant_id"
    list_display = ("started_at", "kind", "outcome_badge", "action", "user_id", "actor", "summary")
    list_filter = ("kind", "outcome")
    list_select_related = ("action",)
    sortable_by = ()
    ordering = ("-started_at", "-pk")
    search_fields = ("=id", "=user_id", "=action__id")
    search_help_text = "The id of an execution, a user or an action."
    fields = ("id", "action", "kind", "outcome_badge", "version", "user_id", "actor", "summary", "started_at", "ended_at", "steps_text")
    readonly_fields = ("outcome_badge", "steps_text")
    empty_text = "Nothing was tried yet. The page of an action offers a connection test and a run for one user."

    @admin.display(description="Outcome", ordering="outcome")
    def outcome_badge(self, row: Trial) -> SafeString:
        return badge(row.get_outcome_display(), _TONES.get(row.outcome, "quiet"))

    @admin.display(description="Steps")
    def steps_text(self, row: Trial) -> SafeString:
        return json_block(pretty(row.steps))
