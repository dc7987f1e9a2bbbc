"""Makes list cells with more than plain text: two lines, an identifier with a button that copies it, an icon with a text, a time."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

_MINUTE = 60


def two_lines(first: str, second: str) -> str:
    """Return `first` with `second` below it in a small font. One element contains both texts, so that a phone shows them in one column."""
    if not second:
        return first
    return format_html('<div class="cell-lines">{}<span class="cell-note">{}</span></div>', first, second)


def short_id(value: str) -> SafeString:
    """Return an identifier with a button that copies it. A list shows only the part that fits into the column."""
    return render_to_string("admin/components/copied_id.html", {"value": value})


@lru_cache(maxsize=3)
def yes_no(value: bool | None) -> SafeString:  # noqa: FBT001
    """Return an icon with a text: yes, no, or not set."""
    return render_to_string("admin/components/yes_no.html", {"value": value})


def age_of(moment: datetime | None) -> str:
    """Return how long ago a moment was, with the time in UTC as tooltip. Without a moment, return a dash."""
    if moment is None:
        return "-"
    utc, now = moment.astimezone(UTC), timezone.now()
    age = f"{timesince(moment, now, depth=1)} ago" if (now - moment).total_seconds() >= _MINUTE else "just now"
    title = f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    return format_html('<time datetime="{}" title="{}" data-shown="age">{}</time>', f"{utc:%Y-%m-%dT%H:%M:%SZ}", title, age)


def clock_of(moment: datetime, *, has_seconds: bool = False) -> SafeString:
    """Return hours and minutes of a moment in UTC. A script shows them in the time zone of the reader."""
    utc = moment.astimezone(UTC)
    shown = f"{utc:%H:%M:%S}" if has_seconds else f"{utc:%H:%M}"
    return format_html('<time datetime="{}" data-clock>{} UTC</time>', f"{utc:%Y-%m-%dT%H:%M:%SZ}", shown)
