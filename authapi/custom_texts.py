"""Texts of hosted pages that a tenant has written itself, by the names that client libraries know: prompt, screen and key.

`templates/hosted/texts.toml` says which there are. A text is plain: it is escaped where it is shown, and only the placeholders of
its screen are filled in. Writes: `services.custom_texts`. Decision: docs/adr/0099.
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

# A change is seen by other processes within this second.
_REMEMBERED_SECONDS = 1.0
PLACEHOLDER = re.compile(r"\$\{(\w*)\}")
# Of the texts of the service, by their names in the catalogues: what an administrator sees of them.
_NAMES_IN_CATALOGUES = {
    "application": "clientName",
    "tenant": "companyName",
    "provider": "connectionName",
    "person": "userName",
    "inviter": "inviterName",
    "organization": "organizationName",
}
# Every prompt of the client libraries. Deploy tools read and write them all, also those of pages that the service does not have.
UPSTREAM_PROMPTS = frozenset({
    "login-id", "login-password", "login-passwordless", "login-email-verification", "signup-id", "signup-password",
    "phone-identifier-enrollment", "phone-identifier-challenge", "email-identifier-challenge", "custom-form", "customized-consent",
    "mfa-push", "mfa-otp", "mfa-voice", "mfa-phone", "mfa-webauthn", "mfa-sms", "mfa-email", "mfa-recovery-code", "mfa", "status",
    "device-flow", "email-otp-challenge", "passkeys", "captcha", "async-approval-flow", "confirmation", "login", "logout", "invitation",
    "organizations", "email-verification", "reset-password", "consent", "common", "brute-force-protection", "signup",
})  # fmt: skip


@dataclass(frozen=True)
class Screen:
    """One page of a prompt: its texts in English as the catalogues have them, and the placeholders that its own may hold."""

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


# Prompt -> screen -> what stands on it.
PROMPTS = _read_table(settings.BASE_DIR / "templates" / "hosted" / "texts.toml")


def _load(tenant_id: str) -> dict[tuple[str, str], str]:
    """Return every text of a tenant by its language and its path."""
    rows = CustomText.objects.of(tenant_id).values_list("language", "prompt", "texts")
    return {
        (language, f"{prompt}.{screen}.{key}"): text
        for language, prompt, screens in rows
        for screen, texts in screens.items()
        for key, text in texts.items()
    }


remembered_texts: Remembered[str, dict[tuple[str, str], str]] = Remembered(_load, seconds=_REMEMBERED_SECONDS)


def custom_text(path: str, default: str, **values: str) -> str:
    """Return the text of the bound tenant in the spoken language for `prompt.screen.key`, plain and not escaped, else `default`.

    `values` are those of the placeholders; `companyName` is always known.
    """
    tenant_id = current_tenant()
    if tenant_id is None:
        return default
    own = remembered_texts.get(tenant_id).get((get_language() or "", path))
    if own is None:
        return default
    known = {"companyName": sign_in_settings(tenant_id).friendly_name, **values}
    # In one pass: what a value holds is never a placeholder again.
    return PLACEHOLDER.sub(lambda match: known.get(match.group(1), ""), own)


def client_values(client: Client) -> dict[str, str]:
    """Return the placeholders of a page that is about a client."""
    return {"clientName": client.name or client.client_id}


def default_text(screen: Screen, key: str) -> str:
    """Return the text of the service in the spoken language, with its placeholders as a tenant writes them and without marks."""
    text = re.sub(r"</?strong>", "", gettext(screen.texts[key]))
    return re.sub(r"%\((\w+)\)s", lambda match: f"${{{_NAMES_IN_CATALOGUES.get(match.group(1), match.group(1))}}}", text)
