"""Tenants and their hosts."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from foundation.ids import is_tenant_id, new_custom_domain_id, new_domain_token
from identity.models.base import TenantOwned

HOST_PATTERN = r"^(?=.{1,253}$)([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$"


def validate_tenant_id(value: str) -> None:
    if not is_tenant_id(value):
        raise ValidationError("3 to 63 characters: lower-case letters, digits and inner hyphens.")


class Tenant(models.Model):
    """One customer of the platform. Its id is on the wire (`x0tenant`) and never changes."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        SUSPENDED = "suspended"
        DRAINING = "draining"
        DELETING = "deleting"
        DELETED = "deleted"
        # A move to another installation. At the source: stopped for the export, then moved. At the target: arriving during the import.
        STOPPED = "stopped"
        MOVED = "moved"
        ARRIVING = "arriving"

    id = models.CharField(primary_key=True, max_length=63, validators=[validate_tenant_id])
    name = models.CharField(max_length=200)
    status = models.CharField(max_length=16, choices=Status, default=Status.ACTIVE)
    event_retention_days = models.PositiveIntegerField(null=True, blank=True, help_text="Empty: the platform's default.")
    max_event_connections = models.PositiveIntegerField(null=True, blank=True, help_text="Empty: the platform's default.")
    deletion_started_at = models.DateTimeField(null=True, blank=True, editable=False)
    purge_after = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="Time at which the event log and the deliveries are deleted. All other data is deleted earlier.",
    )
    setup_dismissed_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Time at which staff dismissed the first steps."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.id

    @property
    def is_active(self) -> bool:
        return self.status == self.Status.ACTIVE

    @property
    def is_stopped(self) -> bool:
        """Whether a move has stopped the tenant: its hosts answer 503, and no worker works for it."""
        return self.status in STOPPED

    @property
    def is_closing(self) -> bool:
        """Whether the deletion of the tenant has begun or is complete. A deleted tenant only waits until its log is old enough."""
        return self.status in (self.Status.DELETING, self.Status.DELETED)


STOPPED = (Tenant.Status.STOPPED, Tenant.Status.MOVED, Tenant.Status.ARRIVING)


class FormerTenant(models.Model):
    """The id of a purged tenant. Events that consumers keep contain it, so no other tenant gets it."""

    id = models.CharField(primary_key=True, max_length=63)
    purged_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-purged_at", "id")

    def __str__(self) -> str:
        return self.id


class CustomDomain(TenantOwned):
    """The first host of a tenant, or a custom domain. Requests to the host reach the tenant only after the host is
    verified. Events contain the canonical host.

    A host may be pending at several tenants until one of them verifies it: a domain that is pending at one tenant must not prevent its
    owner from registering it.
    """

    class CertificateType(models.TextChoices):
        MANAGED = "managed"
        SELF_MANAGED = "self_managed"

    id = models.CharField(primary_key=True, max_length=32, default=new_custom_domain_id, editable=False)
    host = models.CharField(max_length=253, validators=[RegexValidator(HOST_PATTERN, "A lower-case host name without a port.")])
    is_canonical = models.BooleanField("host in events", default=False, help_text="If on, the events of the tenant contain this host.")
    verified_at = models.DateTimeField(null=True, blank=True, help_text="Time at which control of the domain was verified.")
    is_default = models.BooleanField(default=False, db_default=False, help_text="If on, links in mails use this domain.")
    verification_token = models.CharField(max_length=64, blank=True, default=new_domain_token, db_default="", editable=False)
    verification_problem = models.CharField(
        max_length=200, blank=True, default="", db_default="", help_text="Reason why the last check failed."
    )
    certificate_type = models.CharField(
        max_length=16, choices=CertificateType, default=CertificateType.SELF_MANAGED, db_default=CertificateType.SELF_MANAGED
    )
    client_ip_header = models.CharField(max_length=32, blank=True, default="", db_default="")
    metadata = models.JSONField(default=dict, db_default={}, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantOwned.Meta):
        constraints = [
            # Requests find the tenant of their Host header by this index.
            models.UniqueConstraint(fields=["host"], condition=Q(verified_at__isnull=False), name="identity_customdomain_verified_host"),
            models.UniqueConstraint(fields=["tenant", "host"], name="identity_customdomain_tenant_host"),
            models.UniqueConstraint(fields=["tenant"], condition=Q(is_default=True), name="identity_customdomain_one_default"),
            models.UniqueConstraint(fields=["tenant"], condition=Q(is_canonical=True), name="identity_customdomain_one_canonical"),
        ]

    def __str__(self) -> str:
        return self.host
