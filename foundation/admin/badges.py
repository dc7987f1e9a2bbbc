"""Colored labels for states in lists. A CSS class sets the color, because the content security policy forbids inline styles.

Readers must understand the text without the color.
"""

from __future__ import annotations

from typing import Literal

from django.utils.html import format_html
from django.utils.safestring import SafeString

Tone = Literal["good", "bad", "warn", "quiet"]


def badge(text: str, tone: Tone = "quiet") -> SafeString:
    """Return `text` as a small colored label."""
    return format_html('<span class="badge badge-{}">{}</span>', tone, text)


def json_block(text: str) -> SafeString:
    """Return preformatted text, escaped, in a block that keeps its line breaks."""
    return format_html('<pre class="json" tabindex="0">{}</pre>', text)
