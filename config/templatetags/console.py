"""Template filters of the admin console."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django import template
from django.db.models import Model
from django.utils.html import conditional_escape, escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst

from config.console.admin_navigation import NAMES
from config.console.admin_site import site
from events.admin.event_names import wrapping
from foundation.admin.list_cells import clock_of, yes_no
from identity.admin.tenant_scope import TenantScopedAdmin

register = template.Library()
register.filter(wrapping)
_CELL = re.compile(r"<t[dh]\b")
# Django's icon of a yes, a no, or an empty value. Texts of rows are escaped, so they cannot contain this tag.
_ICON = re.compile(r'<img src="[^"]*admin/img/icon-(?:yes|no|unknown)\.svg" alt="(True|False|None)">')
_VALUES = {"True": True, "False": False, "None": None}
_CODE = re.compile(r"`([^`]+)`")


@register.filter
def beside(columns: Iterable[Any], cells: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return pairs of a column and the cell below it."""
    return list(zip(columns, cells, strict=False))


@register.filter
def clock(moment: datetime) -> SafeString:
    """Return hours, minutes and seconds of a moment in UTC. A script replaces them by the time in the time zone of the reader."""
    return clock_of(moment, has_seconds=True)


@register.filter
def labelled(cell: SafeString, header: dict[str, Any]) -> SafeString:
    """Return the HTML of one cell of a Django list.

    Its attribute `data-label` is the name of the column, which phones show beside the cell.

    `header` is the column's entry of `result_headers`. The column with the check boxes has no name. A cell without a value gets
    `data-blank`; a phone hides such cells.
    """
    if "action-checkbox" in str(header.get("class_attrib", "")):
        return cell
    cell = wrapping(said(cell))
    label = escape(capfirst(str(header["text"])))
    blank = " data-blank" if cell.endswith(">-</td>") else ""
    # The cell is HTML that Django has escaped; the label is escaped here.
    return mark_safe(_CELL.sub(lambda found: f'{found[0]} data-label="{label}"{blank}', cell, count=1))  # noqa: S308  # nosec


@register.filter
def said(content: SafeString) -> SafeString:
    """Return the HTML of a cell or field. Django's icons of yes and no are replaced by the icons of the console, with a text."""
    if "admin/img/icon-" not in content:
        return content
    # Django has escaped the content, and the inserted icon contains no text of a row.
    return mark_safe(_ICON.sub(lambda found: yes_no(_VALUES[found[1]]), content))  # noqa: S308  # nosec


@register.filter
def explained(help_text: Any) -> SafeString:
    """Return a help text as HTML: names between backticks become code. A text that is not marked as HTML is escaped."""
    # The names between backticks are parts of a text that is already escaped.
    return mark_safe(_CODE.sub(r"<code>\1</code>", conditional_escape(help_text)))  # noqa: S308  # nosec


@register.filter
def list_name(opts: Any) -> str:
    """Return the name of the list of a model, as in the navigation."""
    return NAMES.get(opts.label_lower) or capfirst(str(opts.verbose_name_plural))


@register.filter
def row_name(row: Model) -> str:
    """Return the name of a row, as in the heading of its page."""
    page = site.get_model_admin(type(row)) if site.is_registered(type(row)) else None
    return page.heading_of(row) if isinstance(page, TenantScopedAdmin) else str(row)
