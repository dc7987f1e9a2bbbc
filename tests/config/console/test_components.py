"""The components page: the staff who can open the page, the components on it, and the sprite with every icon of the templates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.admin.utils import display_for_value
from django.urls import reverse
from django.utils.html import escape, strip_tags
from django.utils.safestring import SafeString, mark_safe

from authapi.models import ApiResource, Client
from config.console.components import TEXT_SIZES, icon_names
from config.templatetags.console import explained, labelled, said
from tests.factories.admin import Rows, browser_of, new_staff, new_tenant

_USED = re.compile(r'components/icon.html" with name="(\w+)"')


def test_platform_operators_see_the_components_and_tenant_staff_do_not(committed_db: None) -> None:
    page = browser_of(new_staff(None)).get(reverse("admin:components"))
    assert "An empty table" in page.content.decode()
    assert browser_of(new_staff(new_tenant())).get(reverse("admin:components")).status_code == 404


def test_the_page_shows_every_component_and_the_scales_of_text_and_distances(committed_db: None) -> None:
    page = browser_of(new_staff(None)).get(reverse("admin:components")).content.decode()
    components = {path.stem for path in (Path(settings.BASE_DIR) / "templates/admin/components").glob("*.html")}
    # The header is part of each page of an object, so it cannot be shown without an object.
    for name in components - {"object_header"} | {"figure", "chart"}:
        root = {"table": "cards"}.get(name, name.replace("_", "-"))
        assert re.search(rf'class="[^"]*\b{root}[ "]', page), name
    style = (Path(settings.BASE_DIR) / "static/theme/admin.css").read_text()
    assert re.findall(r"--text-([a-z]+):", style) == list(reversed(TEXT_SIZES))


def test_every_icon_of_a_template_is_in_the_sprite() -> None:
    templates = [path.read_text() for path in (Path(settings.BASE_DIR) / "templates").rglob("*.html")]
    used = {name for text in templates for name in _USED.findall(text)}
    assert used
    assert used <= set(icon_names())


def test_only_a_cell_without_a_value_is_marked_as_hidden_on_phones() -> None:
    header = {"text": "deletion", "class_attrib": ' class="column-deletion"'}
    assert (
        labelled(mark_safe('<td class="field-deletion">-</td>'), header)
        == '<td data-label="Deletion" data-blank class="field-deletion">-</td>'
    )
    assert labelled(mark_safe('<td class="field-deletion">a-</td>'), header) == '<td data-label="Deletion" class="field-deletion">a-</td>'


def test_a_text_that_looks_like_an_icon_of_django_stays_text() -> None:
    text = escape(display_for_value(True, "-", boolean=True))
    assert said(text) == text


@pytest.mark.parametrize(("value", "text"), [(True, "Yes"), (False, "No"), (None, "Not set")])
def test_an_icon_of_django_becomes_a_text_with_an_icon_of_the_sprite(value: bool | None, text: str) -> None:
    shown = said(SafeString(display_for_value(value, "-", boolean=True)))
    assert strip_tags(shown).split() == text.split()
    assert "admin/img" not in shown
    assert ("<svg" in shown) == (value is not None)


def test_a_help_text_is_escaped_and_its_names_are_code() -> None:
    assert explained("Such as Shop <login@example.com>.") == "Such as Shop &lt;login@example.com&gt;."
    assert explained("`sid` of the session.") == "<code>sid</code> of the session."
    assert explained(mark_safe("<ul><li>Twelve characters</li></ul>")) == "<ul><li>Twelve characters</li></ul>"


@pytest.mark.parametrize("kind", ["list", "page", "form"])
def test_no_page_has_an_icon_of_django(committed_db: None, kind: str) -> None:
    tenant = new_tenant()
    rows = Rows(tenant)
    rows.of(ApiResource)
    addresses = {
        "list": reverse("admin:authapi_apiresource_changelist"),
        "page": reverse("admin:authapi_client_change", args=(rows.of(Client).pk,)),
        "form": reverse("admin:authapi_clientgrant_add"),
    }
    content = browser_of(new_staff(tenant)).get(addresses[kind]).content.decode()
    assert ("Add another" if kind == "form" else 'class="yes-no"') in content
    assert re.findall(r"<img[^>]+admin/img/[^>]+>", content) == []


def test_the_link_that_adds_a_related_row_has_what_the_script_of_django_reads(committed_db: None) -> None:
    content = browser_of(new_staff(new_tenant())).get(reverse("admin:authapi_clientgrant_add")).content.decode()
    (link,) = re.findall(r'<a class="related-widget-wrapper-link add-related"[^>]+id="add_id_client".*?</a>', content, re.DOTALL)
    assert 'data-popup="yes"' in link
    assert 'aria-label="Add another client"' in link
    assert "theme/icons.svg#plus" in link
