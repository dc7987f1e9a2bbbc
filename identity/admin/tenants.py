"""Admin pages of tenants and their domains. Operators can change these rows; staff can view the rows of their tenant."""

from __future__ import annotations

from typing import Any, TypeVar

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db import models
from django.http import HttpRequest

from foundation.admin.badges import badge
from identity.admin.deletions import kind_of
from identity.admin.object_actions import ObjectAction
from identity.admin.scope import is_operator
from identity.admin.service_admin import ServiceAdmin
from identity.admin.service_form import ServiceForm
from identity.admin.tenant_scope import ReadOnlyAdmin
from identity.models import CustomDomain, FormerTenant, Tenant
from identity.services import domains, tenant_deletion, tenants
from identity.services.deletions import deletion_job, percentage
from identity.services.domain_checks import record_name, record_value
from identity.services.failures import Invalid

Row = TypeVar("Row", bound=models.Model)


class OperatorsChange(ServiceAdmin[Row]):
    """Rows that staff of a tenant can view but not change."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_operator(request) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return is_operator(request) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return is_operator(request) and super().has_delete_permission(request, obj)


class TenantForm(ServiceForm):
    host = forms.CharField(
        max_length=253, help_text="Host of the login pages and APIs, such as acme.example.com. Each event of the tenant contains the host."
    )

    class Meta:
        model = Tenant
        fields = ()  # The fields are in the fieldsets of the admin class.
        help_texts = {
            "id": "3 to 63 characters: lowercase letters and digits, and hyphens between them. Cannot be changed, because every event "
            "contains the id.",
            "event_retention_days": (
                "Days for which events are kept, 1 to 3650. Empty: the default of the platform. Older events are deleted within "
                "an hour. A client that reads no events for this time must read all data again. If you lower the number, older "
                "events are deleted and cannot be restored."
            ),
            "max_event_connections": "Maximum number of streams that the clients of the tenant can keep open at the same time. Empty: "
            "the default of the platform.",
        }


def _status_action(name: str, label: str, status: str, *, is_dangerous: bool, effect: str) -> ObjectAction:
    def run(_request: HttpRequest, row: Tenant, _values: dict[str, Any]) -> str:
        tenants.set_tenant_status(tenant_id=row.pk, status=status)
        return f"The tenant {row.pk} is {status}."

    return ObjectAction(
        name,
        label,
        lambda _request, row: effect.format(tenant=row.pk),
        run,
        is_offered=lambda row: row.status != status and not (row.is_closing or row.is_stopped),
        is_dangerous=is_dangerous,
        for_operators_only=True,
    )


class TypedConfirmation(forms.Form):
    """Asks for the id of the tenant as a confirmation."""

    confirmation = forms.CharField(
        label="Id of the tenant", help_text="Enter the id of this tenant to confirm the deletion.", required=False
    )


def _explain_deletion(_request: HttpRequest, row: Tenant) -> str:
    counts = tenant_deletion.what_hangs_on_tenant(row.pk)
    counted = ", ".join(f"{number:,} {kind_of(number, kind)}" for kind, number in counts.items())
    return (
        f"Delete {row.pk} permanently: {counted}. Its hosts answer 403 at once, its streams close, and all its data is deleted"
        f"{_grace_in_words()}. The deletion of each user, connection, organization and group is recorded as an event. The event log "
        f"is kept until its retention has ended. No new tenant can get the id {row.pk}."
    )


def _grace_in_words() -> str:
    days = settings.TENANT_DELETION_GRACE_DAYS
    if not days:
        return ". The deletion begins at once and cannot be undone"
    length = f"{days * 24:g} hours" if days < 1 else f"{days:g} day{'' if days == 1 else 's'}"
    return f" after {length}. Until then, you can cancel the deletion"


def _delete_tenant(_request: HttpRequest, row: Tenant, values: dict[str, Any]) -> str:
    if values["confirmation"] != row.pk:
        raise Invalid({"confirmation": [f"Enter {row.pk} to confirm."]})
    return f"The job {tenant_deletion.start(tenant_id=row.pk).pk} deletes the tenant {row.pk}."


def _restore_tenant(_request: HttpRequest, row: Tenant, _values: dict[str, Any]) -> str:
    return f"The tenant {row.pk} is not deleted. Its state is {tenant_deletion.restore(tenant_id=row.pk).status}."


class TenantAdmin(OperatorsChange[Tenant]):
    form = TenantForm
    grows = False
    list_display = ("id", "name", "state", "created_at")
    list_filter = ("status",)
    sortable_by = ("id", "created_at")
    search_fields = ("id", "name")
    actions = ()
    empty_text = "No tenants yet. Add one for each customer of the platform."
    object_actions = (
        _status_action("suspend", "Suspend", Tenant.Status.SUSPENDED, is_dangerous=True,
                       effect="All hosts of {tenant} answer 403, its open streams close within two seconds, and its staff cannot log in."),
        _status_action("activate", "Activate", Tenant.Status.ACTIVE, is_dangerous=False,
                       effect="All hosts of {tenant} serve requests again, and its staff can log in."),
        ObjectAction("delete", "Delete this tenant", _explain_deletion, _delete_tenant,
                     is_offered=lambda row: not (row.is_closing or row.is_stopped),
                     form_class=TypedConfirmation, is_dangerous=True, for_operators_only=True, needs_proof=True),
        ObjectAction("restore", "Cancel the deletion",
                     lambda _request, row: f"{row.pk} keeps all its data. The tenant stays suspended until you activate it.",
                     _restore_tenant, is_offered=lambda row: row.status == Tenant.Status.DELETING, for_operators_only=True),
    )  # fmt: skip

    def get_fieldsets(self, request: HttpRequest, obj: Tenant | None = None) -> Any:
        if obj is None:
            return [(None, {"fields": ["id", "name", "host"]})]
        return [(None, {"fields": ["id", "name", "state"]}),
                ("Limits", {"fields": ["event_retention_days", "max_event_connections"]}),
                ("Set by the service", {"fields": ["created_at", "updated_at", "deletion_started_at", "purge_after"]})]  # fmt: skip

    def get_readonly_fields(self, request: HttpRequest, obj: Tenant | None = None) -> Any:
        return () if obj is None else ("id", "state", "created_at", "updated_at", "deletion_started_at", "purge_after")

    @admin.display(description="State", ordering="status")
    def state(self, row: Tenant) -> str:
        job = deletion_job(row.pk, row.pk) if row.status == Tenant.Status.DELETING else None
        share = f", {percentage(job)} %" if job is not None else ""
        return badge(f"{row.get_status_display()}{share}", "good" if row.is_active else "bad")

    def has_delete_permission(self, request: HttpRequest, obj: Tenant | None = None) -> bool:
        # The delete action requires the id as a confirmation. Django's delete page would count all related rows.
        return False

    def create(self, request: HttpRequest, form: Any) -> Tenant:
        values = form.cleaned_data
        return tenants.create_tenant(tenant_id=values["id"], name=values["name"], host=values["host"])

    def change(self, request: HttpRequest, row: Tenant, form: Any) -> None:
        tenants.update_tenant(tenant_id=row.pk, changes=form.changes())


def _verify(request: HttpRequest, row: CustomDomain, values: dict[str, Any]) -> str:
    domains.verify_domain(tenant_id=row.tenant_id, domain_id=row.pk)
    return f"{row.host} is verified. The tenant {row.tenant_id} now uses it."


_HOST_HELP = (
    "Such as login.example.com. Save, then add the DNS record that the page of the domain shows. The record proves that you control the "
    "domain."
)


class CustomDomainAdmin(OperatorsChange[CustomDomain]):
    grows = False
    list_display = ("host", "state", "is_canonical", "verified_at", "tenant")
    list_select_related = ("tenant",)
    sortable_by = ("host",)
    ordering = ("host",)
    search_fields = ("host",)
    empty_text = "No domains yet. The host that you enter for a new tenant is its first domain."
    deletion_effect = "Requests to this host no longer reach the tenant."
    object_actions = (
        ObjectAction("verify", "Mark as verified",
                     lambda _request, row: f"You confirm that {row.tenant_id} controls {row.host}. The DNS record is not checked.", _verify,
                     is_offered=lambda row: row.verified_at is None, for_operators_only=True),
    )  # fmt: skip

    def get_form(self, request: HttpRequest, obj: CustomDomain | None = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002
        return super().get_form(request, obj, change=change, help_texts={"host": _HOST_HELP} if obj is None else {}, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: CustomDomain | None = None) -> Any:
        return [(None, {"fields": ["host", *self.get_readonly_fields(request, obj)[1:]]})]

    def get_readonly_fields(self, request: HttpRequest, obj: CustomDomain | None = None) -> Any:
        if obj is None:
            return ()
        # A verified domain no longer needs its DNS record.
        proof = () if obj.verified_at else ("proof",)
        return ("host", "tenant", "state", *proof, "is_canonical", "is_default", "verified_at", "created_at")

    def has_change_permission(self, request: HttpRequest, obj: CustomDomain | None = None) -> bool:
        return False

    @admin.display(description="State")
    def state(self, row: CustomDomain) -> str:
        return badge("Verified", "good") if row.verified_at else badge("Not verified", "warn")

    @admin.display(description="TXT record")
    def proof(self, row: CustomDomain) -> str:
        """Return the required DNS record, and the reason why its last check failed."""
        problem = f" (result of the last check: {row.verification_problem})" if row.verification_problem else ""
        return f"{record_name(row)} must contain {record_value(row)}{problem}"

    def create(self, request: HttpRequest, form: Any) -> CustomDomain:
        return domains.add_domain(tenant_id=self.tenant_for_new(request), host=form.cleaned_data["host"])


class FormerTenantAdmin(ReadOnlyAdmin[FormerTenant]):
    """Ids of deleted tenants, which are never used again. Only operators see this page."""

    grows = False
    list_display = ("id", "purged_at")
    sortable_by = ("id", "purged_at")
    search_fields = ("=id",)
    fields = ("id", "purged_at")
    empty_text = "No former tenants."
