"""The tenant in scope of an admin request: the tenant of the staff account, or the tenant that a platform operator switched to.

The tenant comes from the account or the session, never from the Host header.
"""

from __future__ import annotations

from django.db import models
from django.http import Http404, HttpRequest

from identity.models import Staff, Tenant

SWITCHED_TENANT = "switched_tenant"
TENANT_FIELDS = ("tenant", "tenant_id")


def staff_of(request: HttpRequest) -> Staff | None:
    """Return the staff account of the request; None if it is not logged in."""
    user = request.user
    return user if isinstance(user, Staff) and user.is_active else None


def actor_of(request: HttpRequest) -> str:
    """Return the email address of the staff account, as jobs, trials and dead letters store it."""
    staff = staff_of(request)
    return staff.email if staff else ""


def is_operator(request: HttpRequest) -> bool:
    """Tell whether the account is a platform operator."""
    staff = staff_of(request)
    return staff is not None and staff.is_platform_operator


def tenant_in_scope(request: HttpRequest) -> str | None:
    """Return the tenant whose rows the request may see. None means all tenants, for platform operators only."""
    staff = staff_of(request)
    if staff is None:
        raise Http404
    return _switched(request) if staff.tenant_id is None else staff.tenant_id


def _switched(request: HttpRequest) -> str | None:
    """Return the operator's chosen tenant; None if it no longer exists. Read once per request."""
    if not hasattr(request, "_switched_tenant"):
        chosen = request.session.get(SWITCHED_TENANT)
        request._switched_tenant = chosen if chosen and Tenant.objects.filter(pk=chosen).exists() else None  # type: ignore[attr-defined]
    return request._switched_tenant  # type: ignore[attr-defined, no-any-return]


def switch_tenant(request: HttpRequest, tenant_id: str | None) -> None:
    """Switch an operator to one tenant or to all tenants. Raises 404 for other accounts and unknown tenants."""
    if not is_operator(request) or (tenant_id and not Tenant.objects.filter(pk=tenant_id).exists()):
        raise Http404
    request.session[SWITCHED_TENANT] = tenant_id or None
    request._switched_tenant = tenant_id or None  # type: ignore[attr-defined]


def only_tenant() -> str | None:
    """Return the id of the only tenant; None if there is no tenant or more than one tenant."""
    found = list(Tenant.objects.order_by("pk").values_list("pk", flat=True)[:2])
    return found[0] if len(found) == 1 else None


def tenant_path(model: type[models.Model]) -> str | None:
    """Return the lookup from `model` to the id of its tenant; None for rows of the platform."""
    if model is Tenant:
        return "pk"
    has_tenant = any(field.name in TENANT_FIELDS for field in model._meta.fields)
    return "tenant_id" if has_tenant else None
