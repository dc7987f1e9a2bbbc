"""Versions of an action: copies the draft into a version, deploys it, and compares draft and deployed version.

The caller must hold the lock of the action's row.
"""

from __future__ import annotations

from typing import Any

from foundation.timestamps import wire_time
from provisioning.models.actions import Action, ActionSecret, ActionVersion

MAX_VERSIONS = 50


def add_version(action: Action, contents: dict[str, Any]) -> ActionVersion:
    """Create a version with these contents and deploy it instead of the previous version. Only the newest 50 versions are kept."""
    action.versions.filter(is_deployed=True).update(is_deployed=False)
    newest = action.versions.order_by("-number").first()
    version = ActionVersion.objects.create(action=action, number=1 if newest is None else newest.number + 1, is_deployed=True, **contents)
    unused = list(action.versions.order_by("-number").values_list("pk", flat=True)[MAX_VERSIONS:])
    action.versions.filter(pk__in=unused, is_deployed=False).delete()
    return version


def contents_of_draft(action: Action) -> dict[str, Any]:
    """Return the contents of the draft, for a new version.

    The sealed secrets are copied as they are: they are bound to the action and their names, which are the same in all versions.
    """
    rows = action.secrets.order_by("name")
    secrets = [{"name": secret.name, "sealed": secret.sealed, "updated_at": wire_time(secret.updated_at)} for secret in rows]
    own = {name: getattr(action, name) for name in ("template", "entry_point", "options", "mapping")}
    return {**own, "secrets": secrets}


def contents_of(version: ActionVersion) -> dict[str, Any]:
    """Return the contents of a version, to deploy them again."""
    return {name: getattr(version, name) for name in ("template", "entry_point", "options", "mapping", "secrets")}


def set_draft(action: Action, version: ActionVersion) -> None:
    """Copy the version into the draft, including secrets; the caller saves the action's row."""
    action.entry_point, action.options, action.mapping = version.entry_point, version.options, version.mapping
    action.secrets.all().delete()
    for name, sealed in version.sealed_secrets.items():
        ActionSecret.objects.create(action=action, name=name, sealed=sealed)


def is_draft_deployed(action: Action, deployed: ActionVersion | None) -> bool:
    """Tell whether draft and deployed version are equal."""
    if deployed is None:
        return False
    same = all(getattr(action, name) == getattr(deployed, name) for name in ("entry_point", "options", "mapping"))
    return same and {secret.name: secret.sealed for secret in action.secrets.all()} == deployed.sealed_secrets
