"""The tenant that the admin shows. Staff of a tenant see only their own tenant. Only platform operators can select another tenant."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest
from django.test import RequestFactory

from identity.admin.scope import SWITCHED_TENANT, switch_tenant, tenant_in_scope
from identity.models import Staff, Tenant
from tests.factories.admin import new_staff
from tests.factories.models.identity import TenantFactory


def request_of(staff: Staff | AnonymousUser, **session: str) -> HttpRequest:
    request = RequestFactory().get("/admin/")
    request.user = staff
    request.session = session  # type: ignore[assignment]
    return request


def test_staff_of_a_tenant_cannot_select_a_tenant(tenant: Tenant) -> None:
    other = TenantFactory.create()
    request = request_of(new_staff(tenant))
    for chosen in (other.pk, tenant.pk, None):
        with pytest.raises(Http404):
            switch_tenant(request, chosen)
    assert tenant_in_scope(request) == tenant.pk


def test_a_tenant_in_the_session_of_a_tenant_admin_is_ignored(tenant: Tenant) -> None:
    other = TenantFactory.create()
    assert tenant_in_scope(request_of(new_staff(tenant), **{SWITCHED_TENANT: other.pk})) == tenant.pk


def test_a_request_without_a_login_has_no_tenant(tenant: Tenant) -> None:
    with pytest.raises(Http404):
        tenant_in_scope(request_of(AnonymousUser()))
