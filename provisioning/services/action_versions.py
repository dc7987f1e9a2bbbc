"""Versions of an action: copying the draft into one, deploying it, and telling whether the draft is what is deployed.

Whoever calls has locked the action's row.
"""

from __future__ import annotations

from typing import Any

from foundation.timestamps import wire_time
from provisioning.models.actions import Action, ActionSecret, ActionVersion

MAX_VERSIONS = 50


def add_version(action: Action, contents: dict[str, Any]) -> ActionVersion:
    """Make a version of these contents and deploy it in place of the one before; the oldest beyond 50 go."""
    action.versions.filter(is_deployed=True).update(is_deployed=False)
    newest = action.versions.order_by("-number").first()
    version = ActionVersion.objects.create(action=action, number=1 if newest is None else newest.number + 1, is_deployed=True, **contents)
    unused = list(action.versions.order_by("-number").values_list("pk", flat=True)[MAX_VERSIONS:])
    action.versions.filter(pk__in=unused, is_deployed=False).delete()
    return version


def contents_of_draft(action: Action) -> dict[str, Any]:
    """Return what a version keeps of the draft; secrets stay sealed, for the same action and name."""
    rows = action.secrets.order_by("name")
    secrets = [{"name": secret.name, "sealed": secret.sealed, "updated_at": wire_time(secret.updated_at)} for secret in rows]
    own = {name: getattr(action, name) for name in ("template", "entry_point", "options", "mapping")}
    return {**own, "secrets": secrets}


def contents_of(version: ActionVersion) -> dict[str, Any]:
    """Return what another version of the same action takes over."""
    return {name: getattr(version, name) for name in ("template", "entry_point", "options", "mapping", "secrets")}


def set_draft(action: Action, version: ActionVersion) -> None:
    """Make the draft what the version is, secrets included; the caller saves the action's own columns."""
    action.entry_point, action.options, action.mapping = version.entry_point, version.options, version.mapping
    action.secrets.all().delete()
    for name, sealed in version.sealed_secrets.items():
        ActionSecret.objects.create(action=action, name=name, sealed=sealed)


def is_draft_deployed(action: Action, deployed: ActionVersion | None) -> bool:
    """Tell whether the deployed version is what the draft says."""
    if deployed is None:
        return False
    same = all(getattr(action, name) == getattr(deployed, name) for name in ("entry_point", "options", "mapping"))
    return same and {secret.name: secret.sealed for secret in action.secrets.all()} == deployed.sealed_secrets
