"""Which tenant a request of the admin may see: that of the staff account, or the one a platform operator switched to.

It comes from the account or from the session, never from the Host header.
"""

from __future__ import annotations

from django.db import models
from django.http import Http404, HttpRequest

from identity.models import Staff, Tenant

SWITCHED_TENANT = "switched_tenant"
TENANT_FIELDS = ("tenant", "tenant_id")


def staff_of(request: HttpRequest) -> Staff | None:
    """Return the staff account behind the request, None before it has signed in."""
    user = request.user
    return user if isinstance(user, Staff) and user.is_active else None


def actor_of(request: HttpRequest) -> str:
    """Return who asks, as jobs, trials and dead letters keep it."""
    staff = staff_of(request)
    return staff.email if staff else ""


def is_operator(request: HttpRequest) -> bool:
    """Tell whether a platform operator asks."""
    staff = staff_of(request)
    return staff is not None and staff.is_platform_operator


def tenant_in_scope(request: HttpRequest) -> str | None:
    """Return the tenant whose rows the request may see; None means all, and only ever for a platform operator."""
    staff = staff_of(request)
    if staff is None:
        raise Http404
    return _switched(request) if staff.tenant_id is None else staff.tenant_id


def _switched(request: HttpRequest) -> str | None:
    """Return the operator's chosen tenant; one that is gone since counts as none. Read once per request."""
    if not hasattr(request, "_switched_tenant"):
        chosen = request.session.get(SWITCHED_TENANT)
        request._switched_tenant = chosen if chosen and Tenant.objects.filter(pk=chosen).exists() else None  # type: ignore[attr-defined]
    return request._switched_tenant  # type: ignore[attr-defined, no-any-return]


def switch_tenant(request: HttpRequest, tenant_id: str | None) -> None:
    """Let an operator see one tenant, or all of them again; 404 for anybody else and for a tenant that is not there."""
    if not is_operator(request) or (tenant_id and not Tenant.objects.filter(pk=tenant_id).exists()):
        raise Http404
    request.session[SWITCHED_TENANT] = tenant_id or None
    request._switched_tenant = tenant_id or None  # type: ignore[attr-defined]


def only_tenant() -> str | None:
    """Return the id of the one tenant there is, None when there are none or several."""
    found = list(Tenant.objects.order_by("pk").values_list("pk", flat=True)[:2])
    return found[0] if len(found) == 1 else None


def tenant_path(model: type[models.Model]) -> str | None:
    """Return the lookup from `model` to the id of its tenant, None for rows that belong to the platform."""
    if model is Tenant:
        return "pk"
    has_tenant = any(field.name in TENANT_FIELDS for field in model._meta.fields)
    return "tenant_id" if has_tenant else None
