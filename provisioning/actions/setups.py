"""The configuration of a run: the draft of an action, or the version that deliveries run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from provisioning.models.actions import Action, ActionVersion


@dataclass(frozen=True)
class Setup:
    """The configuration of an action. `version` is None for the draft; secrets stay sealed and are excluded from `repr`."""

    tenant_id: str
    action_id: UUID
    action_name: str
    template: str
    entry_point: str
    options: Mapping[str, Any]
    mapping: Any
    sealed: Mapping[str, str] = field(repr=False)
    # Capabilities of the server, which all versions share. A run adds capabilities that it has found.
    capabilities: dict[str, Any] = field(default_factory=dict)
    version: int | None = None


def draft_setup(action: Action) -> Setup:
    """Return the present draft of the action."""
    return Setup(
        tenant_id=action.tenant_id,
        action_id=action.pk,
        action_name=action.name,
        template=action.template,
        entry_point=action.entry_point,
        options=action.options,
        mapping=action.mapping,
        sealed={secret.name: secret.sealed for secret in action.secrets.all()},
        capabilities=dict(action.capabilities),
    )


def version_setup(version: ActionVersion) -> Setup:
    """Return the configuration of this deployed version of the action."""
    action = version.action
    return Setup(
        tenant_id=action.tenant_id,
        action_id=action.pk,
        action_name=action.name,
        template=version.template,
        entry_point=version.entry_point,
        options=version.options,
        mapping=version.mapping,
        sealed=version.sealed_secrets,
        capabilities=dict(action.capabilities),
        version=version.number,
    )


def deployed_setup(*, tenant_id: str, action_id: Any) -> Setup | None:
    """Return the configuration that deliveries run; None if the action is deleted or not deployed. Needs one query."""
    versions = ActionVersion.objects.filter(action_id=action_id, action__tenant_id=tenant_id, is_deployed=True)
    version = versions.select_related("action").first()
    return None if version is None else version_setup(version)
