"""The pages of staff accounts in the admin, and which accounts may create, change and deactivate staff accounts."""

from __future__ import annotations

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from identity.models import AuditEntry, Staff, Tenant
from identity.services.failures import NotSupported
from identity.services.staff import update_staff
from tests.factories.admin import PASSWORD, PLATFORM, browser_of, new_staff

ADD = "admin:identity_staff_add"


def page(staff: Staff) -> str:
    return reverse("admin:identity_staff_change", args=(quote(staff.pk),))


def test_a_tenant_admin_can_create_accounts_only_for_its_own_tenant(browser: Client, tenant: Tenant) -> None:
    email = f"new@{tenant.pk}.test"
    browser.post(reverse(ADD), {"email": email.upper(), "password": PASSWORD, "role": "administrator", "tenant": "", "is_superuser": "on"})

    made = Staff.objects.get(email=email)
    assert (made.tenant_id, made.is_superuser, made.check_password(PASSWORD)) == (tenant.pk, False, True)


def test_the_add_page_tells_a_platform_operator_that_new_accounts_are_platform_operators(operator: Client, tenant: Tenant) -> None:
    assert "applies in all tenants" in operator.get(reverse(ADD)).content.decode()

    operator.post(reverse(ADD), {"email": f"op@{tenant.pk}.test", "password": PASSWORD, "role": "administrator"})
    assert Staff.objects.get(email=f"op@{tenant.pk}.test").is_platform_operator


def test_a_weak_password_and_a_used_address_are_reported_on_the_form(browser: Client, staff: Staff) -> None:
    sent = {"email": "a@b.test", "password": "short", "role": "auditor"}
    assert "too short" in browser.post(reverse(ADD), sent).content.decode()
    assert "already exists" in browser.post(reverse(ADD), {**sent, "email": staff.email, "password": PASSWORD}).content.decode()


def test_the_form_requires_a_role_and_preselects_no_role(browser: Client, tenant: Tenant) -> None:
    form = browser.get(reverse(ADD)).content.decode()
    assert "Sees no clients, keys or staff accounts" in form
    assert 'type="radio"' in form
    assert "checked" not in form.partition('name="role"')[2].partition("</fieldset>")[0]

    for role in ("", "owner"):
        refused = browser.post(reverse(ADD), {"email": f"new@{tenant.pk}.test", "password": PASSWORD, "role": role})
        assert refused.status_code == 200
    assert not Staff.objects.filter(email=f"new@{tenant.pk}.test").exists()


def test_no_account_changes_its_own_role(browser: Client, staff: Staff) -> None:
    assert 'name="role"' not in browser.get(page(staff)).content.decode()
    browser.post(page(staff), {"is_active": "on", "role": "auditor"})
    with pytest.raises(NotSupported):
        update_staff(staff_id=staff.pk, by=staff, role="auditor")

    assert Staff.objects.get(pk=staff.pk).role == "administrator"


def test_a_new_role_applies_from_the_next_request(browser: Client, tenant: Tenant) -> None:
    colleague = new_staff(tenant)
    session = browser_of(colleague)
    assert session.get(reverse(ADD)).status_code == 200
    browser.post(page(colleague), {"is_active": "on", "role": "auditor"})

    assert session.get(reverse(ADD)).status_code == 403
    noted = AuditEntry.objects.get(object_type="identity.staff", object_id=str(colleague.pk), kind="change")
    assert (noted.before, noted.after) == ({"role": "administrator"}, {"role": "auditor"})


def test_no_account_can_deactivate_itself(browser: Client, staff: Staff) -> None:
    answer = browser.post(page(staff), {"password": ""})

    assert "You cannot switch off your own account" in answer.content.decode()
    assert Staff.objects.get(pk=staff.pk).is_active


def test_a_deactivated_account_loses_its_session(browser: Client, tenant: Tenant) -> None:
    colleague = new_staff(tenant)
    session = browser_of(colleague)
    browser.post(page(colleague), {"password": "", "role": colleague.role})

    assert session.get("/admin/").status_code == 302


def test_a_new_password_ends_other_sessions_and_keeps_the_current_session(browser: Client, staff: Staff) -> None:
    other = Client(headers={"host": PLATFORM})
    other.force_login(staff)
    browser.post(page(staff), {"is_active": "on", "password": "another-long-password-2"})

    assert other.get("/admin/").status_code == 302
    assert browser.get("/admin/").status_code == 200


def test_staff_accounts_cannot_be_deleted(operator: Client, staff: Staff) -> None:
    answer = operator.post(reverse("admin:identity_staff_delete", args=(quote(staff.pk),)), {"post": "yes"})

    assert answer.status_code == 403
    assert Staff.objects.filter(pk=staff.pk).exists()


def test_the_page_of_a_staff_account_shows_no_password_hash(operator: Client, staff: Staff) -> None:
    assert staff.password not in operator.get(page(staff)).content.decode()
