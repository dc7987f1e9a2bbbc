"""A choice of a related row, with a link that adds a row in a new window."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.forms.renderers import TemplatesSetting
from django.utils.safestring import SafeString


class RelatedChoice(RelatedFieldWidgetWrapper):
    """Django's wrapper of a choice.

    Shows only the link that adds a row, in the style of the console; no links that change, delete or view rows.
    """

    template_name = "admin/related_choice.html"

    def __init__(self, wrapped: RelatedFieldWidgetWrapper) -> None:
        super().__init__(wrapped.widget, wrapped.rel, wrapped.admin_site, can_add_related=wrapped.can_add_related)

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        # The renderer of forms reads templates of apps only, not those of the project.
        return super().render(name, value, attrs, TemplatesSetting())
