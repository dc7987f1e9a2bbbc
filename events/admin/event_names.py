"""Lets event types wrap on pages: a type such as `organization.connection.removed` is wider than a phone and contains no space."""

from __future__ import annotations

import re
from typing import Any

from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

from events.record.catalogue import EVENT_TYPES

# An event type at the start of a text or directly after a tag. In a text, `>` is escaped, so each unescaped `>` ends a tag.
_TYPE = re.compile(rf"(?:\A|(?<=>))(?:{'|'.join(map(re.escape, EVENT_TYPES))})(?=[\s<,]|\Z)")


def wrapping(text: Any) -> SafeString:
    """Return a text, or escaped HTML, in which an event type wraps only after a dot. Text that is copied from the page is unchanged."""
    escaped = conditional_escape(text)
    # `mark_safe` is correct here: the text is escaped, and an event type contains no character with a meaning in HTML.
    return mark_safe(_TYPE.sub(lambda name: name[0].replace(".", ".<wbr>"), escaped))  # noqa: S308  # nosec
