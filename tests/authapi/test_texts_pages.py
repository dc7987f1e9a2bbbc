"""Texts of hosted pages in the admin."""

from __future__ import annotations

import pytest
from django.test import Client as Browser
from django.urls import reverse
from django.utils.translation import get_language

from authapi.models import CustomText
from authapi.services.custom_texts import set_custom_texts
from identity.models import AuditEntry, Tenant
from identity.staff_roles import AUDITOR
from tests.factories.admin import browser_of, new_staff, new_tenant

OVERVIEW = "admin:authapi_texts"


def place(language: str = "de", screen: str = "login") -> str:
    return reverse("admin:authapi_texts_screen", kwargs={"prompt": screen, "screen": screen, "language": language})


def texts(tenant: Tenant, language: str = "de", prompt: str = "login") -> object:
    row = CustomText.objects.of(tenant.pk).filter(prompt=prompt, language=language).first()
    return row.texts if row else None


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


def test_each_field_shows_the_default_text_in_its_language(browser: Browser) -> None:
    page = browser.get(place()).content.decode()
    assert '<q lang="de" dir="ltr">Weiter zu ${clientName}</q>' in page
    assert '<html lang="en"' in page
    assert "German is off" in page
    assert '<q lang="ar" dir="rtl">' in browser.get(place("ar")).content.decode()
    assert get_language() == "en"


def test_texts_are_saved_shown_and_counted(browser: Browser, tenant: Tenant) -> None:
    answer = browser.post(place(), {"title": "Willkommen", "buttonText": "Los"}, follow=True)
    assert "Texts saved." in answer.content.decode()
    assert texts(tenant) == {"login": {"title": "Willkommen", "buttonText": "Los"}}
    assert 'value="Willkommen"' in answer.content.decode()
    assert "2 changed" in browser.get(reverse(OVERVIEW)).content.decode()
    assert AuditEntry.objects.filter(tenant_id=tenant.pk, object_type="authapi.customtext").exists()


def test_resetting_a_text_restores_its_default_and_shows_the_removed_text(browser: Browser, tenant: Tenant) -> None:
    browser.post(place(), {"title": "Willkommen", "buttonText": "Los"})
    said = browser.post(place(), {"reset": "title", "title": "typed and not saved"}, follow=True).content.decode()
    assert "Text reset to its default: title. Your text was: Willkommen" in said
    assert texts(tenant) == {"login": {"buttonText": "Los"}}
    browser.post(place(), {"buttonText": ""})
    assert texts(tenant) is None


def test_saving_a_text_in_one_language_does_not_change_other_languages(browser: Browser, tenant: Tenant) -> None:
    browser.post(place("de"), {"title": "Willkommen"})
    browser.post(place("fr"), {"title": "Bienvenue"})
    assert (texts(tenant, "de"), texts(tenant, "fr")) == ({"login": {"title": "Willkommen"}}, {"login": {"title": "Bienvenue"}})


@pytest.mark.parametrize("text", ["Hi ${secret}", "x" * 501, "a\u202eb"])
def test_an_invalid_text_is_not_stored_and_its_error_is_shown_beside_its_field(browser: Browser, tenant: Tenant, text: str) -> None:
    answer = browser.post(place(), {"title": text})
    assert answer.status_code == 200
    assert "errorlist" in answer.content.decode()
    assert texts(tenant) is None


def test_html_in_a_text_is_shown_as_text(browser: Browser) -> None:
    page = browser.post(place(), {"title": '"><script>alert(1)</script>'}, follow=True).content.decode()
    assert "<script>alert" not in page
    page = browser.post(place(), {"reset": "title"}, follow=True).content.decode()
    assert "<script>alert" not in page


def test_an_auditor_can_read_texts_but_not_change_them(tenant: Tenant) -> None:
    set_custom_texts(tenant_id=tenant.pk, prompt="login", language="de", texts={"login": {"title": "Willkommen"}})
    auditor = browser_of(new_staff(tenant, AUDITOR))
    page = auditor.get(place()).content.decode()
    assert "Willkommen" in page
    assert 'value="Save" class="default"' not in page
    assert 'name="reset"' not in page
    assert auditor.post(place(), {"title": "Mine"}).status_code == 404
    assert texts(tenant) == {"login": {"title": "Willkommen"}}


def test_texts_of_another_tenant_are_not_shown_or_changed(browser: Browser) -> None:
    other = new_tenant()
    set_custom_texts(tenant_id=other.pk, prompt="login", language="de", texts={"login": {"title": "Theirs"}})
    assert "Theirs" not in browser.get(place()).content.decode()
    browser.post(place(), {"title": "Ours"})
    assert texts(other) == {"login": {"title": "Theirs"}}


def test_an_unknown_screen_or_language_is_not_found(browser: Browser) -> None:
    assert browser.get(place("pt")).status_code == 404
    assert browser.get(place("de", "nothing")).status_code == 404
