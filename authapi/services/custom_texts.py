"""Stores a tenant's own texts of hosted pages, and checks which texts can be set, which characters they have, and how long they are."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from authapi.custom_texts import PLACEHOLDER, PROMPTS, UPSTREAM_PROMPTS, Screen, remembered_texts
from authapi.models import CustomText
from foundation.database.transactions import after_commit, lock_rows, unit_of_work
from identity.languages import LANGUAGES
from identity.models import Tenant
from identity.services.failures import Invalid
from identity.services.saving import validated_save

# Maximum number of characters. The longest text of the service, in any language, is less than half as long.
LONGEST_TEXT = 500
_LONGEST_NAME_SHOWN = 64
# Characters that change the direction of the text after them, even outside their own text. Two kinds of characters for the direction are
# allowed and not in this set: the isolates of Unicode, and marks that affect a single letter.
_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e")


@unit_of_work
def set_custom_texts(*, tenant_id: str, prompt: str, language: str, texts: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Replace the texts of a prompt in a language; `texts` is `{screen: {key: text}}`.

    An empty or omitted text means the service's own text. Returns the stored texts. Raises `Invalid`; the error for an unknown name lists
    the valid names.
    """
    require_place(prompt, language)
    kept = _checked(prompt, texts)
    lock_rows(Tenant, [tenant_id])
    found = CustomText.objects.of(tenant_id).filter(prompt=prompt, language=language).first()
    if kept:
        row = found or CustomText(tenant_id=tenant_id, prompt=prompt, language=language)
        row.texts = kept
        validated_save(row)
    elif found is not None:
        found.delete()
    after_commit(remembered_texts.forget, tenant_id)
    return kept


def custom_texts_of(*, tenant_id: str, prompt: str, language: str) -> dict[str, dict[str, str]]:
    """Return the stored texts of a tenant. Raises `Invalid` for an unknown prompt or language."""
    require_place(prompt, language)
    row = CustomText.objects.of(tenant_id).filter(prompt=prompt, language=language).first()
    return row.texts if row is not None else {}


def require_place(prompt: str, language: str) -> None:
    """Raise `Invalid` if the prompt does not exist or the language has no catalogue."""
    if prompt not in PROMPTS and prompt not in UPSTREAM_PROMPTS:
        raise Invalid({"prompt": [f"Unknown prompt {_shown(prompt)}. Choose from {', '.join(PROMPTS)}."]})
    if language not in LANGUAGES:
        raise Invalid({"language": [f"There are no texts in the language {_shown(language)}. Choose from {', '.join(LANGUAGES)}."]})


def text_problem(screen: Screen, text: str) -> str:
    """Return why a text is refused; empty if it is valid."""
    if len(text) > LONGEST_TEXT:
        return f"A text has at most {LONGEST_TEXT} characters."
    if any(unicodedata.category(letter) == "Cc" or letter in _OVERRIDES for letter in text):
        return "A text is one line of plain text, without control characters."
    unknown = next((name for name in PLACEHOLDER.findall(text) if name not in screen.placeholders), None)
    if unknown is not None:
        known = ", ".join(f"${{{name}}}" for name in screen.placeholders)
        return f"Unknown placeholder ${{{_shown(unknown)}}}. Choose from {known}."
    return ""


def _checked(prompt: str, texts: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    screens, kept = PROMPTS.get(prompt, {}), {}
    for name, own in texts.items():
        screen = screens.get(name)
        if screen is None:
            known = f"Choose from {', '.join(screens)}." if screens else f"Prompts with texts are {', '.join(PROMPTS)}."
            raise Invalid({prompt: [f"Unknown screen {_shown(name)}. {known}"]})
        if not isinstance(own, dict):
            raise Invalid({f"{prompt}.{name}": ["Expected type object"]})
        filled = {key: text for key, text in own.items() if _is_filled(screen, f"{prompt}.{name}", key, text)}
        if filled:
            kept[name] = filled
    return kept


def _is_filled(screen: Screen, place: str, key: str, text: Any) -> bool:
    """Tell whether a text replaces the text of the service. Raises `Invalid`."""
    if key not in screen.texts:
        raise Invalid({place: [f"Unknown key {_shown(key)}. Choose from {', '.join(screen.texts)}."]})
    if not isinstance(text, str):
        raise Invalid({f"{place}.{key}": ["Expected type string"]})
    if problem := text_problem(screen, text):
        raise Invalid({f"{place}.{key}": [problem]})
    return bool(text.strip())


def _shown(name: str) -> str:
    """Return a name from a request, shortened and as ASCII, so that an error text can contain it."""
    return name[:_LONGEST_NAME_SHOWN].encode("ascii", "replace").decode()
