"""The secrets of actions at rest: sealed for their place, opened only for a run, never shown."""

from __future__ import annotations

from identity import vault
from provisioning.failures import Misconfigured
from provisioning.models.actions import Action, ActionSecret


def place_of(action: Action, name: str) -> str:
    """Return what a sealed value is bound to: copied to another tenant, action or name it does not open."""
    return f"{action.tenant_id}:action:{action.id}:{name}"


def seal_secret(action: Action, name: str, value: str) -> ActionSecret:
    """Store `value` under `name`, replacing an earlier one."""
    secret, _ = ActionSecret.objects.update_or_create(
        action=action, name=name, defaults={"sealed": vault.seal(value, place=place_of(action, name))}
    )
    return secret


def open_secrets(action: Action) -> dict[str, str]:
    """Return every secret of the action by name; raise `Misconfigured` naming one that does not open."""
    opened: dict[str, str] = {}
    for secret in action.secrets.all():
        try:
            opened[secret.name] = vault.unseal(secret.sealed, place=place_of(action, secret.name))
        except vault.SecretUnreadable as error:
            raise Misconfigured(f"the secret {secret.name} cannot be read: {error}") from error
    return opened
