"""The pages of account links in the admin: their states, the confirmation of suspects, and the deletion of links."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from identity.models import AuditEntry, Staff, Tenant
from provisioning.links.rows import write_links
from provisioning.models import AccountLink
from provisioning.scim.links import Link
from tests.factories.admin import new_tenant

LIST = reverse("admin:provisioning_accountlink_changelist")


def make_link(tenant: Tenant, user_id: str, **more: Any) -> AccountLink:
    row = Link(tenant.pk, str(uuid4()), "0" * 32, user_id, **{"remote_id": uuid4().hex, **more})
    write_links([row.document()])
    return AccountLink.objects.get(tenant_id=tenant.pk, user_id=user_id)


@pytest.fixture
def browser(tenant: Tenant, settings: Settings) -> Client:
    settings.SECURE_SSL_REDIRECT = False
    client = Client(headers={"host": "localhost"})
    client.force_login(Staff.objects.create_user(f"admin@{tenant.pk}.test", "long-enough-password", tenant=tenant))
    return client


def test_the_list_shows_the_state_of_each_link(browser: Client, tenant: Tenant) -> None:
    states: dict[str, dict[str, Any]] = {
        "database|linked": {},
        "database|suspect": {"is_suspect": True},
        "database|ended": {"ended": 9},
        "database|gone": {"is_missing": True},
        "database|doubt": {"remote_id": "", "doubt": 3},
    }
    for user_id, more in states.items():
        make_link(tenant, user_id, **more)
    page = browser.get(LIST).content.decode()
    for state in ("Linked", "Suspect", "Ended", "Missing", "In doubt"):
        assert f">{state}<" in page
    suspects = browser.get(LIST, {"is_suspect__exact": "1"}).content.decode()
    assert "database|suspect" in suspects
    assert "database|linked" not in suspects


def test_a_suspect_is_confirmed_on_its_page_with_an_entry_in_the_audit_log(browser: Client, tenant: Tenant) -> None:
    row = make_link(tenant, "database|anna", is_suspect=True)
    page = reverse("admin:provisioning_accountlink_action", args=(row.pk, "confirm"))
    assert "comparison" in browser.get(page).content.decode()
    assert AccountLink.objects.get(pk=row.pk).is_suspect
    browser.post(page)
    row.refresh_from_db()
    assert (row.is_suspect, row.origin) == (False, "adopted")
    assert AuditEntry.objects.filter(tenant_id=tenant.pk, act="Confirm link").exists()


def test_a_link_to_a_created_account_can_be_confirmed_only_if_no_sent_name_is_stored(browser: Client, tenant: Tenant) -> None:
    row = make_link(tenant, "database|anna", origin="created")
    named = make_link(tenant, "database|bob", origin="created", user_names=("bob@example.test",))
    browser.post(reverse("admin:provisioning_accountlink_action", args=(row.pk, "confirm")))
    row.refresh_from_db()
    assert row.origin == "adopted"
    assert "/confirm" not in browser.get(reverse("admin:provisioning_accountlink_change", args=(named.pk,))).content.decode()


def test_selected_suspects_are_confirmed_together_and_other_links_do_not_change(browser: Client, tenant: Tenant) -> None:
    rows = [make_link(tenant, f"database|{number}", is_suspect=number < 2) for number in range(3)]
    chosen = {"action": "confirm_selected", "_selected_action": [str(row.pk) for row in rows]}
    asked = browser.post(LIST, chosen)
    assert asked.status_code == 200
    form = asked.context["form"]
    browser.post(LIST, {**chosen, "confirmed": "yes", "reason": "compared", "shown": form["shown"].value()}, follow=True)
    assert not AccountLink.objects.filter(tenant_id=tenant.pk, is_suspect=True).exists()


def test_a_link_can_be_deleted_and_a_link_of_another_tenant_cannot(browser: Client, tenant: Tenant) -> None:
    mine, theirs = make_link(tenant, "database|mine"), make_link(new_tenant(), "database|theirs")
    for row in (mine, theirs):
        browser.post(reverse("admin:provisioning_accountlink_action", args=(row.pk, "forget")))
    assert list(AccountLink.objects.filter(pk__in=[mine.pk, theirs.pk])) == [theirs]


def test_an_empty_list_explains_when_a_link_is_created(browser: Client) -> None:
    assert "No links yet" in browser.get(LIST).content.decode()
