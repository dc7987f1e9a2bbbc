"""The page of each row: its header, its breadcrumbs, and its link in the list."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from authapi.models import Consent
from config.console.admin_navigation import NAMES
from config.console.admin_site import site
from identity.models import PasswordCredential, User
from tests.factories.admin import Rows, browser_of, new_staff, new_tenant
from tests.factories.admin_pages import place_of

_HEAD = re.compile(r'<header class="object-header">.*?<h1>(.*?)</h1>', re.DOTALL)
_TRAIL = re.compile(r'<div class="breadcrumbs">(.*?)</div>', re.DOTALL)
_LINK = re.compile(r'<a href="([^"]+)">([^<]+)</a>')


@pytest.fixture
def rows(committed_db: None) -> Rows:
    return Rows(new_tenant())


@pytest.fixture
def operator(rows: Rows) -> Client:
    browser = browser_of(new_staff(None))
    browser.post(reverse("admin:choose_tenant"), {"tenant": rows.tenant.pk})
    return browser


def test_the_page_of_each_row_begins_with_the_name_of_the_row(operator: Client, rows: Rows) -> None:
    headless, named_by_key = [], []
    for model, page in site._registry.items():
        if getattr(page, "tenant_column", None) is None:
            continue
        shown = operator.get(place_of(model, "change", quote(rows.of(model).pk)), follow=True).content.decode()
        found = _HEAD.search(shown)
        if found is None:
            headless.append(model._meta.label)
        # Matches a heading with the key of a user, or with a name from the source code: small letters before a key or an underscore.
        elif re.search(r"of user \d+$|^[a-z]+ \d+$|^[a-z]+_[a-z]+ ", found[1]):
            named_by_key.append(model._meta.label)
    assert (headless, named_by_key) == ([], [])


def test_each_list_has_the_same_name_in_breadcrumbs_and_navigation(operator: Client, rows: Rows) -> None:
    wrong = {}
    for label, title in NAMES.items():
        model = next((each for each in site._registry if each._meta.label_lower == label), None)
        if model is None or not getattr(site._registry[model], "tenant_column", None):
            continue
        place = place_of(model, "change", quote(rows.of(model).pk))
        for address in (place, place.replace("/change/", "/history/")):
            trail = _TRAIL.search(operator.get(address, follow=True).content.decode())
            links = _LINK.findall(trail[1]) if trail else []
            if (place_of(model, "changelist"), title) not in links and title not in (trail or [""])[0]:
                wrong[address] = links
    assert wrong == {}


def test_a_row_that_belongs_to_a_user_is_named_after_the_user(operator: Client, rows: Rows) -> None:
    user = rows.of(User)
    key = quote(rows.of(PasswordCredential).pk)
    page = operator.get(place_of(PasswordCredential, "change", key)).content.decode()
    history = operator.get(place_of(PasswordCredential, "history", key)).content.decode()
    assert f"<h1>Password of {user.email}</h1>" in page
    assert f"<h1>History: Password of {user.email}</h1>" in history


def test_the_list_of_consents_links_to_each_consent(operator: Client, rows: Rows) -> None:
    consent = rows.of(Consent)
    page = operator.get(place_of(Consent, "changelist")).content.decode()
    assert f'href="{place_of(Consent, "change", quote(consent.pk))}' in page
