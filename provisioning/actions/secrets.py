"""Encrypts secrets of actions and webhooks, each bound to its owner and name, and decrypts them for a run. No page shows a secret."""

from __future__ import annotations

import json
from dataclasses import asdict
from uuid import UUID

from foundation.secrets import vault
from provisioning.actions.setups import Setup, draft_setup
from provisioning.models.actions import Action, ActionSecret
from provisioning.models.webhooks import WebhookSecrets
from provisioning.runs.failures import Misconfigured
from provisioning.scim.settings import BASE_URL, BEARER_TOKEN, REQUIRED, origin_of
from provisioning.webhooks.configuration import WebhookConfiguration


def seal_secret(action: Action, name: str, value: str) -> ActionSecret:
    """Store `value` under `name`; replaces an earlier value."""
    secret, _ = ActionSecret.objects.update_or_create(
        action=action, name=name, defaults={"sealed": vault.seal(value, place=place_of(action.tenant_id, action.pk, name))}
    )
    return secret


def open_secrets(action: Action) -> dict[str, str]:
    """Return every secret of the draft by name; raise `Misconfigured` with the name of a secret that cannot be decrypted."""
    return open_sealed(draft_setup(action))


def takes_token_elsewhere(action: Action, base_url: str) -> bool:
    """Tell whether the stored token would be sent to a host for which it was not entered.

    A missing or unreadable stored base URL is treated as another host, because an attacker may have removed the URL to bypass this check.
    """
    stored = {secret.name: secret.sealed for secret in action.secrets.filter(name__in=REQUIRED)}
    if BEARER_TOKEN not in stored:
        return False
    try:
        before = vault.unseal(stored[BASE_URL], place=place_of(action.tenant_id, action.pk, BASE_URL))
        return origin_of(before) != origin_of(base_url)
    except (KeyError, ValueError, vault.SecretUnreadable):
        return True


def open_sealed(setup: Setup) -> dict[str, str]:
    """Return every secret of a `Setup` by name; raise `Misconfigured` with the name of a secret that cannot be decrypted."""
    opened: dict[str, str] = {}
    for name, sealed in setup.sealed.items():
        try:
            opened[name] = vault.unseal(sealed, place=place_of(setup.tenant_id, setup.action_id, name))
        except vault.SecretUnreadable as error:
            raise Misconfigured(f"the secret {name} cannot be decrypted: {error}") from error
    return opened


def open_sealed_secret(setup: Setup, name: str) -> str:
    """Return one secret; raise `KeyError` if the secret does not exist, and `vault.SecretUnreadable` if it cannot be decrypted."""
    return vault.unseal(setup.sealed[name], place=place_of(setup.tenant_id, setup.action_id, name))


def seal_webhook(*, tenant_id: str, stream_id: str, webhook: WebhookConfiguration) -> None:
    """Store URL and credentials of the stream's webhook as one value, so that a delivery never mixes two configurations."""
    sealed = vault.seal(json.dumps(asdict(webhook)), place=place_of_webhook(tenant_id, stream_id))
    WebhookSecrets.objects.update_or_create(stream_id=stream_id, defaults={"tenant_id": tenant_id, "sealed": sealed})


def open_webhook(*, tenant_id: str, stream_id: str) -> WebhookConfiguration:
    """Return the stream's webhook with its secrets; raise `Misconfigured` if the secrets are missing or cannot be decrypted."""
    row = WebhookSecrets.objects.filter(tenant_id=tenant_id, stream_id=stream_id).first()
    if row is None:
        raise Misconfigured("the secrets of the webhook are missing: set the destination again")
    try:
        return WebhookConfiguration(**json.loads(vault.unseal(row.sealed, place=place_of_webhook(tenant_id, stream_id))))
    except vault.SecretUnreadable as error:
        raise Misconfigured(f"the secrets of the webhook cannot be decrypted: {error}") from error


def place_of(tenant_id: str, action_id: UUID, name: str) -> str:
    """Return the associated data of a secret, so that a copy for another tenant, action or name cannot be decrypted.

    All versions of an action have the same associated data.
    """
    return f"{tenant_id}:action:{action_id}:{name}"


def place_of_webhook(tenant_id: str, stream_id: str) -> str:
    return f"{tenant_id}:stream:{stream_id}:webhook"
