"""A choice of a related row, with a link that adds a row in a new window."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.forms.renderers import TemplatesSetting
from django.utils.safestring import SafeString


class RelatedChoice(RelatedFieldWidgetWrapper):
    """Django's widget for the choice of a related row, with links beside it.

    Shows only the link that adds a row, in the style of the console. Links that change, delete or view rows are left out.
    """

    template_name = "admin/related_choice.html"

    def __init__(self, wrapped: RelatedFieldWidgetWrapper) -> None:
        super().__init__(wrapped.widget, wrapped.rel, wrapped.admin_site, can_add_related=wrapped.can_add_related)

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        # The usual renderer of forms finds only templates of apps, but the template of this widget belongs to the project.
        return super().render(name, value, attrs, TemplatesSetting())
