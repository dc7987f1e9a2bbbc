"""The heading of each list of the admin: its name in the navigation, and one sentence."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import models
from django.urls import reverse
from django.utils.html import escape

from config.console.admin_navigation import NAMES, ROWS
from config.console.admin_site import site
from config.console.admin_words import ABOUT
from events.models import LogEntry
from identity.models import AuditEntry, LinkedIdentity, Tenant, User
from tests.factories.admin import browser_of, new_staff

# A list with the default name, a list with the name that the navigation shows, and a list with its own search form.
_SAMPLE = (User, LinkedIdentity, LogEntry)


@pytest.fixture(scope="module")
def labels() -> set[str]:
    return {model._meta.label_lower for model in site._registry}


def test_every_list_has_one_short_sentence_and_every_sentence_belongs_to_a_list(labels: set[str]) -> None:
    assert set(ABOUT) == labels
    assert [text for text in ABOUT.values() if not text.endswith(".") or len(text) > 140] == []


def test_every_list_has_the_name_that_the_navigation_shows() -> None:
    named = {model._meta.label_lower: getattr(page, "list_title", "") for model, page in site._registry.items()}

    assert {label: title for label, title in named.items() if title} == NAMES


def test_every_model_with_its_own_name_for_rows_has_a_list(labels: set[str]) -> None:
    assert set(ROWS) <= labels


def test_no_label_repeats_the_prefix_or_the_abbreviation_of_a_column() -> None:
    shown = [str(field.verbose_name) for model in site._registry for field in model._meta.local_fields]
    assert [label for label in shown if label.startswith("is ") or {"kid", "sid", "dn"} & set(label.split())] == []


@pytest.mark.parametrize("model", _SAMPLE)
def test_a_list_begins_with_its_name_and_one_sentence(committed_db: None, tenant: Tenant, model: type[models.Model]) -> None:
    operator = browser_of(new_staff(None))
    operator.post(reverse("admin:choose_tenant"), {"tenant": tenant.pk})
    label = model._meta.label_lower

    page = operator.get(reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")).content.decode()

    assert f"<h1>{NAMES.get(label, 'Users')}</h1>" in page
    assert escape(ABOUT[label]) in page


def test_the_page_of_an_audit_entry_shows_the_ip_address_and_no_empty_fields(tenant: Tenant) -> None:
    browser = browser_of(new_staff(tenant))
    made = {"tenant_id": tenant.pk, "act_id": uuid4(), "kind": "act", "actor_kind": "staff", "actor_name": "ada", "act": "Exported"}
    bare, whole = (AuditEntry.objects.create(**made, **more) for more in ({}, {"ip": "192.0.2.7", "reason": "They left."}))
    place = "admin:identity_auditentry_change"

    shown = browser.get(reverse(place, args=(whole.pk,))).content.decode()
    assert "<label>IP address:</label>" in shown
    assert "They left." in shown
    page = browser.get(reverse(place, args=(bare.pk,))).content.decode()
    assert [name for name in ("ip", "user_agent", "reason", "more") if f"field-{name}" in page] == []
    assert "IP address" in browser.get(reverse("admin:identity_auditentry_changelist")).content.decode()
