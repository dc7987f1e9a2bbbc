"""The hosts of a tenant besides its first one. A host answers once it is verified."""

from __future__ import annotations

from django.utils import timezone

from identity.hosts import forget_hosts
from identity.models import CustomDomain
from identity.services.failures import AlreadyExists, NotFound, NotSupported
from identity.services.saving import validated_save
from identity.transactions import unit_of_work


@unit_of_work
def add_domain(*, tenant_id: str, host: str) -> CustomDomain:
    """Note that a tenant claims `host`; nothing answers there yet. Raises `Invalid`, or `AlreadyExists` for a claimed host."""
    host = host.strip().lower().removesuffix(".")
    if CustomDomain.all_tenants.filter(host=host).exists():
        raise AlreadyExists("This host is claimed already.")
    domain = CustomDomain(tenant_id=tenant_id, host=host)
    validated_save(domain)
    return domain


@unit_of_work
def verify_domain(*, tenant_id: str, domain_id: str) -> CustomDomain:
    """Let the tenant answer on the host from now on, after control over it was proven."""
    domain = _locked(tenant_id, domain_id)
    if domain.verified_at is None:
        domain.verified_at = timezone.now()
        domain.save(update_fields=["verified_at"])
        forget_hosts()
    return domain


@unit_of_work
def remove_domain(*, tenant_id: str, domain_id: str) -> None:
    """Stop answering on a host; raise `NotSupported` for the canonical one, which stands in every event's `source`."""
    domain = _locked(tenant_id, domain_id)
    if domain.is_canonical:
        raise NotSupported("The canonical domain of a tenant cannot be removed.")
    domain.delete()
    forget_hosts()


def _locked(tenant_id: str, domain_id: str) -> CustomDomain:
    domain = CustomDomain.objects.of(tenant_id).select_for_update().filter(pk=domain_id).first()
    if domain is None:
        raise NotFound("The domain does not exist.")
    return domain
