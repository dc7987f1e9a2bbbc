"""JSON documents of actions and versions. Secrets have a name and a time, never a value."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch, QuerySet

from foundation.timestamps import wire_time
from provisioning.actions.registry import TRIGGER, TRIGGER_VERSION
from provisioning.models import Action, ActionVersion
from provisioning.services.action_versions import is_draft_deployed
from provisioning.services.action_warnings import warnings_of
from provisioning.services.actions import deployed_version

RUNTIME = "python"
SUPPORTED_TRIGGERS = [{"id": TRIGGER, "version": TRIGGER_VERSION}]
TRIGGER_DOCUMENT = {
    "id": TRIGGER,
    "version": TRIGGER_VERSION,
    "status": "CURRENT",
    "runtimes": [RUNTIME],
    "default_runtime": RUNTIME,
    "compatible_triggers": [],
    "binding_policy": "entity-bound",
}


def with_details(actions: QuerySet[Action]) -> QuerySet[Action]:
    """Add the related rows that `action_document` needs; three queries in total."""
    return actions.prefetch_related("secrets", Prefetch("versions", ActionVersion.objects.filter(is_deployed=True)))


def action_document(action: Action) -> dict[str, Any]:
    """Return the draft, the deployed version, and `warnings` if there are any."""
    deployed = deployed_version(action)
    document = {
        "id": str(action.pk),
        "name": action.name,
        "supported_triggers": SUPPORTED_TRIGGERS,
        **_program(action),
        "secrets": [{"name": secret.name, "updated_at": wire_time(secret.updated_at)} for secret in action.secrets.all()],
        "status": action.status,
        "all_changes_deployed": is_draft_deployed(action, deployed),
    }
    if deployed is not None:
        document["current_version"] = document["deployed_version"] = _version(deployed)
    if action.built_at is not None:
        document["built_at"] = wire_time(action.built_at)
    told = {"warnings": warnings} if (warnings := warnings_of(action)) else {}
    return {**document, "created_at": wire_time(action.created_at), "updated_at": wire_time(action.updated_at), **told}


def version_document(version: ActionVersion) -> dict[str, Any]:
    """Return one version with its action."""
    action = version.action
    owner = {
        "id": str(action.pk),
        "name": action.name,
        "supported_triggers": SUPPORTED_TRIGGERS,
        "created_at": wire_time(action.created_at),
        "updated_at": wire_time(action.updated_at),
    }
    return {**_version(version), "action": owner}


def _version(version: ActionVersion) -> dict[str, Any]:
    made_at = wire_time(version.created_at)
    return {
        "id": str(version.pk),
        "action_id": str(version.action_id),
        "number": version.number,
        "deployed": version.is_deployed,
        **_program(version),
        "secrets": [{"name": secret["name"], "updated_at": secret["updated_at"]} for secret in version.secrets],
        "status": "built",
        "errors": [],
        "supported_triggers": SUPPORTED_TRIGGERS,
        "built_at": made_at,
        "created_at": made_at,
        "updated_at": made_at,
    }


def _program(row: Action | ActionVersion) -> dict[str, Any]:
    """Return program and configuration. `code` is always empty, because custom code is not supported."""
    named = {"template": row.template} if row.template else {"entry_point": row.entry_point}
    return {**named, "options": row.options, "mapping": row.mapping, "code": "", "dependencies": [], "runtime": RUNTIME}
