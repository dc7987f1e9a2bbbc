"""Pages that stand beside the rows of one admin class: the frame that all of them share."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import ModelAdmin
from django.http import HttpRequest
from django.template.response import TemplateResponse


def page_beside(owner: ModelAdmin[Any], request: HttpRequest, template: str, title: str, **context: Any) -> TemplateResponse:
    """Return the page within the site of `owner`, whose rows its breadcrumbs lead to."""
    request.current_app = owner.admin_site.name
    own = {"title": title, "subtitle": None, "opts": owner.opts, "media": owner.media}
    return TemplateResponse(request, template, {**owner.admin_site.each_context(request), **own, **context})
