"""Tenants and domains in the admin. Platform operators change tenants and domains. Tenant admins can only see their own tenant and its
domains."""

from __future__ import annotations

import secrets

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from events.models import Head
from identity.hosts import forget_hosts, resolve_host
from identity.models import CustomDomain, Tenant
from identity.services.domains import add_domain


def action(row: Tenant | CustomDomain, name: str) -> str:
    return reverse(f"admin:identity_{row._meta.model_name}_action", args=(quote(row.pk), name))


def test_an_operator_creates_a_tenant_with_its_domain_and_log(operator: Client) -> None:
    tenant_id = f"t-{secrets.token_hex(6)}"
    answer = operator.post(reverse("admin:identity_tenant_add"), {"id": tenant_id, "name": "New", "host": f"{tenant_id}.example.test"})

    assert answer.status_code == 302
    assert Head.objects.filter(pk=tenant_id).exists()
    assert CustomDomain.objects.of(tenant_id).get().is_canonical


def test_an_invalid_id_and_a_used_id_are_reported_on_the_form(operator: Client, tenant: Tenant) -> None:
    add = reverse("admin:identity_tenant_add")

    assert "lower-case letters" in operator.post(add, {"id": "Big Letters", "name": "x", "host": "x.example.test"}).content.decode()
    assert "already exists" in operator.post(add, {"id": tenant.pk, "name": "x", "host": "x.example.test"}).content.decode()
    assert "already" in operator.post(add, {"id": "x-free-id", "name": "x", "host": f"{tenant.pk}.example.test"}).content.decode()


def test_an_operator_can_change_the_name_and_the_retention_but_not_the_id(operator: Client, tenant: Tenant) -> None:
    operator.post(
        reverse("admin:identity_tenant_change", args=(quote(tenant.pk),)), {"id": "other", "name": "Renamed", "event_retention_days": "7"}
    )

    changed = Tenant.objects.get(pk=tenant.pk)
    assert (changed.name, changed.event_retention_days) == ("Renamed", 7)


@pytest.mark.parametrize("days", ["0", "3651", "-1", "many"])
def test_an_invalid_retention_is_reported_on_the_form_and_not_stored(operator: Client, tenant: Tenant, days: str) -> None:
    place = reverse("admin:identity_tenant_change", args=(quote(tenant.pk),))

    page = operator.post(place, {"name": "Renamed", "event_retention_days": days})

    assert page.status_code == 200
    assert "errorlist" in page.content.decode()
    unchanged = Tenant.objects.get(pk=tenant.pk)
    assert (unchanged.name, unchanged.event_retention_days) == (tenant.pk, None)
    assert "Days for which events are kept" in page.content.decode()


def test_an_empty_retention_selects_the_default_of_the_platform(operator: Client, tenant: Tenant) -> None:
    Tenant.objects.filter(pk=tenant.pk).update(event_retention_days=7)
    operator.post(reverse("admin:identity_tenant_change", args=(quote(tenant.pk),)), {"name": "x", "event_retention_days": ""})
    assert Tenant.objects.get(pk=tenant.pk).event_retention_days is None


def test_only_operators_suspend_a_tenant(browser: Client, operator: Client, tenant: Tenant) -> None:
    assert browser.post(action(tenant, "suspend")).status_code == 403

    operator.post(action(tenant, "suspend"))
    assert Tenant.objects.get(pk=tenant.pk).status == "suspended"
    operator.post(action(tenant, "activate"))
    assert Tenant.objects.get(pk=tenant.pk).is_active


def test_a_tenant_admin_sees_its_tenant_and_cannot_change_it(browser: Client, tenant: Tenant) -> None:
    place = reverse("admin:identity_tenant_change", args=(quote(tenant.pk),))

    assert browser.get(place).status_code == 200
    assert browser.post(place, {"name": "Renamed"}).status_code == 403
    assert browser.get(reverse("admin:identity_tenant_add")).status_code == 403


def test_a_domain_is_served_after_an_operator_has_marked_it_as_verified(operator: Client, tenant: Tenant) -> None:
    host = f"login.{tenant.pk}.example.test"
    domain = add_domain(tenant_id=tenant.pk, host=host)
    assert resolve_host(host) is None

    operator.post(action(domain, "verify"))

    forget_hosts()
    match = resolve_host(host)
    assert match is not None
    assert match.tenant_id == tenant.pk


def test_the_page_of_a_domain_shows_its_dns_record_until_the_domain_is_verified(operator: Client, tenant: Tenant) -> None:
    domain = add_domain(tenant_id=tenant.pk, host=f"login.{tenant.pk}.example.test")
    page = reverse("admin:identity_customdomain_change", args=(quote(domain.pk),))
    assert "must contain" in operator.get(page).content.decode()

    operator.post(action(domain, "verify"))

    assert "must contain" not in operator.get(page).content.decode()


def test_the_canonical_domain_cannot_be_removed(operator: Client, tenant: Tenant) -> None:
    domain = CustomDomain.objects.of(tenant.pk).get()
    page = operator.post(reverse("admin:identity_customdomain_delete", args=(quote(domain.pk),)), {"post": "yes"}, follow=True)

    assert "cannot be removed" in page.content.decode()
    assert CustomDomain.objects.of(tenant.pk).exists()


@pytest.mark.parametrize(
    ("days", "sentence"),
    [
        (0.0, "all its data is deleted. The deletion begins at once and cannot be undone."),
        (0.5, "all its data is deleted after 12 hours. Until then, you can cancel the deletion."),
        (1.0, "all its data is deleted after 1 day."),
        (30.0, "all its data is deleted after 30 days."),
    ],
)
def test_the_page_says_whether_a_deletion_can_be_canceled(
    operator: Client, tenant: Tenant, settings: Settings, days: float, sentence: str
) -> None:
    settings.TENANT_DELETION_GRACE_DAYS = days
    assert sentence in operator.get(action(tenant, "delete")).content.decode()


def test_only_operators_can_delete_a_tenant_and_must_type_its_id(browser: Client, operator: Client, tenant: Tenant) -> None:
    assert browser.post(action(tenant, "delete"), {"confirmation": tenant.pk}).status_code == 403
    assert "0 users" in operator.get(action(tenant, "delete")).content.decode()
    assert f"Enter {tenant.pk} to confirm" in operator.post(action(tenant, "delete"), {"confirmation": "acme"}).content.decode()
    assert Tenant.objects.get(pk=tenant.pk).is_active

    operator.post(action(tenant, "delete"), {"confirmation": tenant.pk})

    assert Tenant.objects.get(pk=tenant.pk).status == "deleting"
    assert operator.post(action(tenant, "activate")).status_code == 403
    operator.post(action(tenant, "restore"))
    assert Tenant.objects.get(pk=tenant.pk).status == "suspended"
