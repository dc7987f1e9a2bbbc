"""Words of state in lists, coloured by class so that a strict content policy holds; the word itself says it all."""

from __future__ import annotations

from typing import Literal

from django.utils.html import format_html
from django.utils.safestring import SafeString

Tone = Literal["good", "bad", "warn", "quiet"]


def badge(text: str, tone: Tone = "quiet") -> SafeString:
    """Return `text` as a small coloured label."""
    return format_html('<span class="badge badge-{}">{}</span>', tone, text)


def json_block(text: str) -> SafeString:
    """Return text that is already laid out, escaped, in a block that keeps its line breaks."""
    return format_html('<pre class="json" tabindex="0">{}</pre>', text)
