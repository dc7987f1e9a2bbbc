"""Texts that a tenant has written for its hosted pages. Client libraries identify a text by its prompt, screen and key.

`templates/hosted/texts.toml` lists all texts. A text is plain: pages escape it, and only the placeholders of its screen are replaced.
`services.custom_texts` writes the texts. Decision: docs/adr/0099.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import get_language, gettext

from authapi.models import Client, CustomText
from authapi.tenant_settings import sign_in_settings
from foundation.memory.ttl_cache import Remembered
from foundation.tenancy import current_tenant

# Other processes see a change within this time.
_REMEMBERED_SECONDS = 1.0
PLACEHOLDER = re.compile(r"\$\{(\w*)\}")
# The placeholders in the default texts, with the names under which administrators see them.
_NAMES_IN_CATALOGUES = {
    "application": "clientName",
    "tenant": "companyName",
    "provider": "connectionName",
    "person": "userName",
    "inviter": "inviterName",
    "organization": "organizationName",
}
# All prompts of the client libraries. Deployment tools also read and write prompts of pages that the service does not have.
UPSTREAM_PROMPTS = frozenset({
    "login-id", "login-password", "login-passwordless", "login-email-verification", "signup-id", "signup-password",
    "phone-identifier-enrollment", "phone-identifier-challenge", "email-identifier-challenge", "custom-form", "customized-consent",
    "mfa-push", "mfa-otp", "mfa-voice", "mfa-phone", "mfa-webauthn", "mfa-sms", "mfa-email", "mfa-recovery-code", "mfa", "status",
    "device-flow", "email-otp-challenge", "passkeys", "captcha", "async-approval-flow", "confirmation", "login", "logout", "invitation",
    "organizations", "email-verification", "reset-password", "consent", "common", "brute-force-protection", "signup",
})  # fmt: skip


@dataclass(frozen=True)
class Screen:
    """One page of a prompt: its English texts as they are in the catalogues, and the placeholders that a tenant's text may contain."""

    name: str
    title: str
    texts: Mapping[str, str]
    placeholders: tuple[str, ...]


def _read_table(path: Path) -> dict[str, dict[str, Screen]]:
    with path.open("rb") as file:
        table = tomllib.load(file)
    return {prompt: {name: _screen(name, rows) for name, rows in screens.items()} for prompt, screens in table.items()}


def _screen(name: str, rows: Mapping[str, Any]) -> Screen:
    return Screen(name, rows["title"], rows["texts"], tuple(rows["placeholders"]))


# The screens of all prompts: by the name of the prompt, then by the name of the screen.
PROMPTS = _read_table(settings.BASE_DIR / "templates" / "hosted" / "texts.toml")


def _load(tenant_id: str) -> dict[tuple[str, str], str]:
    """Return all texts of a tenant by language and path."""
    rows = CustomText.objects.of(tenant_id).values_list("language", "prompt", "texts")
    return {
        (language, f"{prompt}.{screen}.{key}"): text
        for language, prompt, screens in rows
        for screen, texts in screens.items()
        for key, text in texts.items()
    }


remembered_texts: Remembered[str, dict[tuple[str, str], str]] = Remembered(_load, seconds=_REMEMBERED_SECONDS)


def custom_text(path: str, default: str, **values: str) -> str:
    """Return the text of the bound tenant in the active language for `prompt.screen.key`, unescaped.

    Returns `default` if the tenant has not written this text. `values` are the values of the placeholders. `companyName` is always set.
    """
    tenant_id = current_tenant()
    if tenant_id is None:
        return default
    own = remembered_texts.get(tenant_id).get((get_language() or "", path))
    if own is None:
        return default
    known = {"companyName": sign_in_settings(tenant_id).friendly_name, **values}
    # Replace in one pass, so that a placeholder inside a value is not replaced.
    return PLACEHOLDER.sub(lambda match: known.get(match.group(1), ""), own)


def client_values(client: Client) -> dict[str, str]:
    """Return the values of the placeholders on a page that belongs to a client."""
    return {"clientName": client.name or client.client_id}


def default_text(screen: Screen, key: str) -> str:
    """Return the default text in the active language, with placeholders as tenants write them and without HTML tags."""
    text = re.sub(r"</?strong>", "", gettext(screen.texts[key]))
    return re.sub(r"%\((\w+)\)s", lambda match: f"${{{_NAMES_IN_CATALOGUES.get(match.group(1), match.group(1))}}}", text)
