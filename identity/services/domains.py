"""The hosts of a tenant in addition to its canonical host. Requests reach the tenant once a host is verified."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from foundation.database.transactions import lock_name, unit_of_work
from identity.hosts import forget_hosts
from identity.models import CustomDomain
from identity.services.failures import AlreadyExists, Conflict, Invalid, NotFound, NotSupported
from identity.services.saving import validated_save

# The TXT record is below the host, so the host must be shorter than the longest DNS name.
LONGEST_HOST = 220
MOST_DOMAINS = 100
MOST_METADATA = 10
# Prefix of the alias at which clients send certificates (`identity.hosts`).
_EDGE_ALIAS = "mtls."
_TAKEN = "The domain is in use already."


@unit_of_work
def add_domain(*, tenant_id: str, host: str, **fields: Any) -> CustomDomain:
    """Add a pending host. The tenant does not answer requests to this host yet.

    The same host may be pending at another tenant. Otherwise a tenant could add a host of another owner, and so prevent this owner from
    adding it. Raises `Invalid` for a host that no tenant may have, `AlreadyExists` if this tenant has the host or another tenant has
    verified the host, and `Conflict` if the tenant has too many domains.
    """
    host = host.strip().lower().removesuffix(".")
    problem = _host_problem(host)
    if problem:
        raise Invalid({"host": [problem]})
    if _is_proven(host) or CustomDomain.objects.of(tenant_id).filter(host=host).exists():
        raise AlreadyExists(_TAKEN)
    if CustomDomain.objects.of(tenant_id).count() >= MOST_DOMAINS:
        raise Conflict(f"A tenant has at most {MOST_DOMAINS} domains.")
    domain = CustomDomain(tenant_id=tenant_id, host=host, **fields)
    validated_save(domain)
    return domain


@unit_of_work
def update_domain(*, tenant_id: str, domain_id: str, changes: dict[str, Any]) -> CustomDomain:
    """Replace the header and merge the metadata of a domain. A null removes its key.

    Raises `NotFound`, or `Invalid` for more than `MOST_METADATA` keys.
    """
    domain = _locked(tenant_id, domain_id)
    if "client_ip_header" in changes:
        domain.client_ip_header = changes["client_ip_header"]
    if "metadata" in changes:
        merged = {**domain.metadata, **changes["metadata"]}
        domain.metadata = {name: value for name, value in merged.items() if value is not None}
        if len(domain.metadata) > MOST_METADATA:
            raise Invalid({"domain_metadata": [f"Too many properties defined, maximum {MOST_METADATA}."]})
    if changes:
        domain.clean_fields()
        domain.save(update_fields=list(changes))
    return domain


@unit_of_work
def verify_domain(*, tenant_id: str, domain_id: str) -> CustomDomain:
    """Mark a domain as verified, so that the tenant answers on its host.

    Raises `NotFound`, or `AlreadyExists` if another tenant has verified the host before.
    """
    domain = _locked(tenant_id, domain_id)
    # Two tenants may verify the same host concurrently: the first tenant gets the host.
    lock_name(f"host:{domain.host}")
    if domain.verified_at is None:
        if _is_proven(domain.host):
            raise AlreadyExists(_TAKEN)
        domain.verified_at, domain.verification_problem = timezone.now(), ""
        domain.save(update_fields=["verified_at", "verification_problem"])
        _forget_hosts()
    return domain


@unit_of_work
def note_unproven(*, tenant_id: str, domain_id: str, problem: str) -> CustomDomain:
    """Store why a check of a domain failed. Does not change a domain that was verified meanwhile. Raises `NotFound`."""
    domain = _locked(tenant_id, domain_id)
    if domain.verified_at is None and domain.verification_problem != problem:
        domain.verification_problem = problem
        domain.save(update_fields=["verification_problem"])
    return domain


@unit_of_work
def set_default_domain(*, tenant_id: str, host: str) -> CustomDomain:
    """Use a verified domain of the tenant, custom or canonical, in links in mails from now on. Raises `Invalid` for any other host."""
    lock_name(f"default domain:{tenant_id}")
    domains = CustomDomain.objects.of(tenant_id)
    domain = domains.select_for_update(no_key=True).filter(host=host.lower(), verified_at__isnull=False).first()
    if domain is None:
        raise Invalid({"host": ["Expected a verified domain of the tenant."]})
    for former in domains.filter(is_default=True).exclude(pk=domain.pk):
        former.is_default = False
        former.save(update_fields=["is_default"])
    if not domain.is_default and not domain.is_canonical:
        domain.is_default = True
        domain.save(update_fields=["is_default"])
    return domain


@unit_of_work
def remove_domain(*, tenant_id: str, domain_id: str, is_by_operator: bool = False) -> None:
    """Remove a host, so that the tenant no longer answers on it.

    Raises `NotFound`, `NotSupported` for the canonical domain (it is the `source` of every event), and `Conflict` for the default
    domain. An operator may remove the default domain: links in mails then use the canonical domain.
    """
    domain = _locked(tenant_id, domain_id)
    if domain.is_canonical:
        raise NotSupported("The canonical domain of a tenant cannot be removed.")
    if domain.is_default and not is_by_operator:
        raise Conflict("The domain is the default of the tenant. Set another default domain first.")
    domain.delete()
    _forget_hosts()


def _host_problem(host: str) -> str | None:
    """Return why no tenant may have a host, even with a TXT record: it is a host of the service, an IP address, or not a public name."""
    if len(host) > LONGEST_HOST:
        return f"Expected at most {LONGEST_HOST} characters."
    if "." not in host or host.rpartition(".")[2].isdigit():
        return "Expected a host name with a dot, not an address."
    # RFC 6761, 6.3: names below `localhost` are loopback addresses too.
    if host == settings.PLATFORM_HOST or host.endswith(".localhost"):
        return "The host belongs to the service."
    if host.startswith(_EDGE_ALIAS):
        return f"Names that begin with {_EDGE_ALIAS} are reserved for client certificates."
    return None


def _is_proven(host: str) -> bool:
    return CustomDomain.all_tenants.filter(host=host, verified_at__isnull=False).exists()


def _forget_hosts() -> None:
    """Clear the host cache of this process now and after the commit: until the commit, the process may cache the old rows again."""
    forget_hosts()
    transaction.on_commit(forget_hosts)


def _locked(tenant_id: str, domain_id: str) -> CustomDomain:
    domain = CustomDomain.objects.of(tenant_id).select_for_update().filter(pk=domain_id).first()
    if domain is None:
        raise NotFound("The custom domain does not exist.")
    return domain
