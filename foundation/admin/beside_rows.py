"""The shared frame of admin pages that belong to an admin class but not to a single row."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import ModelAdmin
from django.http import HttpRequest
from django.template.response import TemplateResponse


def page_beside(owner: ModelAdmin[Any], request: HttpRequest, template: str, title: str, **context: Any) -> TemplateResponse:
    """Return the page within the site of `owner`; the breadcrumbs lead to the list of `owner`."""
    request.current_app = owner.admin_site.name
    own = {"title": title, "subtitle": None, "opts": owner.opts, "media": owner.media}
    return TemplateResponse(request, template, {**owner.admin_site.each_context(request), **own, **context})
