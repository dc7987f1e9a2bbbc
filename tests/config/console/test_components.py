"""The components page: which staff can open it, and that the sprite contains every icon of the templates."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings
from django.urls import reverse
from django.utils.safestring import mark_safe

from config.console.components import DISTANCES, TEXT_SIZES, icon_names
from config.templatetags.console import labelled
from tests.factories.admin import browser_of, new_staff, new_tenant

_USED = re.compile(r'components/icon.html" with name="(\w+)"')


def test_platform_operators_see_the_components_and_tenant_staff_do_not(committed_db: None) -> None:
    page = browser_of(new_staff(None)).get(reverse("admin:components"))
    assert "An empty table" in page.content.decode()
    assert browser_of(new_staff(new_tenant())).get(reverse("admin:components")).status_code == 404


def test_the_page_shows_every_component_and_both_scales(committed_db: None) -> None:
    page = browser_of(new_staff(None)).get(reverse("admin:components")).content.decode()
    components = {path.stem for path in (Path(settings.BASE_DIR) / "templates/admin/components").glob("*.html")}
    # The head is a part of each page of an object, and needs an object.
    for name in components - {"object_header"} | {"figure", "chart"}:
        root = {"table": "cards"}.get(name, name.replace("_", "-"))
        assert re.search(rf'class="[^"]*\b{root}[ "]', page), name
    style = (Path(settings.BASE_DIR) / "static/theme/admin.css").read_text()
    assert re.findall(r"--text-([a-z]+):", style) == list(reversed(TEXT_SIZES))
    assert f"gaps are {', '.join(map(str, DISTANCES[:-1]))} or {DISTANCES[-1]} pixels" in style


def test_every_icon_of_a_template_is_in_the_sprite() -> None:
    templates = [path.read_text() for path in (Path(settings.BASE_DIR) / "templates").rglob("*.html")]
    used = {name for text in templates for name in _USED.findall(text)}
    assert used
    assert used <= set(icon_names())


def test_only_a_cell_without_a_value_is_marked_so_that_a_phone_hides_it() -> None:
    header = {"text": "deletion", "class_attrib": ' class="column-deletion"'}
    assert (
        labelled(mark_safe('<td class="field-deletion">-</td>'), header)
        == '<td data-label="Deletion" data-blank class="field-deletion">-</td>'
    )
    assert labelled(mark_safe('<td class="field-deletion">a-</td>'), header) == '<td data-label="Deletion" class="field-deletion">a-</td>'
