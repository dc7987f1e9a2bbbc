"""The hosts of a tenant besides its first one. A host answers once it is verified."""

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

# A record of the DNS stands below the host, so the host cannot have the longest name.
LONGEST_HOST = 220
MOST_DOMAINS = 100
MOST_METADATA = 10
# A host with this in front is the alias at which clients send certificates (`identity.hosts`).
_EDGE_ALIAS = "mtls."
_TAKEN = "The domain is in use already."


@unit_of_work
def add_domain(*, tenant_id: str, host: str, **fields: Any) -> CustomDomain:
    """Add a host that is pending; nothing answers there yet.

    The same host pending at another tenant does not stand in the way: otherwise it would keep the owner out.
    Raises `Invalid` for a host that no tenant may have, `AlreadyExists` when it is the tenant's already or proven by another
    one, and `Conflict` when the tenant has too many.
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
    """Replace the header and merge the metadata of a domain, a null removes its key.

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
    """Let the tenant answer on the host from now on, after control over it was proven.

    Raises `NotFound`, or `AlreadyExists` when another tenant has proven its control before.
    """
    domain = _locked(tenant_id, domain_id)
    # Two tenants may prove their control at the same moment: the first one gets the host.
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
    """Keep why a check of a domain failed; a domain that was verified meanwhile stays so. Raises `NotFound`."""
    domain = _locked(tenant_id, domain_id)
    if domain.verified_at is None and domain.verification_problem != problem:
        domain.verification_problem = problem
        domain.save(update_fields=["verification_problem"])
    return domain


@unit_of_work
def set_default_domain(*, tenant_id: str, host: str) -> CustomDomain:
    """Let links in mails lead to a verified domain of the tenant, a custom one or the canonical one; raise `Invalid`."""
    lock_name(f"default domain:{tenant_id}")
    domains = CustomDomain.objects.of(tenant_id)
    domain = domains.select_for_update(no_key=True).filter(host=host.lower(), verified_at__isnull=False).first()
    if domain is None:
        raise Invalid({"host": ["A verified domain of the tenant is expected."]})
    for former in domains.filter(is_default=True).exclude(pk=domain.pk):
        former.is_default = False
        former.save(update_fields=["is_default"])
    if not domain.is_default and not domain.is_canonical:
        domain.is_default = True
        domain.save(update_fields=["is_default"])
    return domain


@unit_of_work
def remove_domain(*, tenant_id: str, domain_id: str, is_by_operator: bool = False) -> None:
    """Stop answering on a host; raise `NotFound`.

    Raises `NotSupported` for the canonical one, which stands in every event's `source`, and `Conflict` for the default one, unless an
    operator takes it away: links in mails lead to the canonical one from then on.
    """
    domain = _locked(tenant_id, domain_id)
    if domain.is_canonical:
        raise NotSupported("The canonical domain of a tenant cannot be removed.")
    if domain.is_default and not is_by_operator:
        raise Conflict("The domain is the default of the tenant. Set another default domain first.")
    domain.delete()
    _forget_hosts()


def _host_problem(host: str) -> str | None:
    """Return why no tenant may have a host, although its DNS may prove it: one of the service itself, an address, or no public name."""
    if len(host) > LONGEST_HOST:
        return f"At most {LONGEST_HOST} characters are expected."
    if "." not in host or host.rpartition(".")[2].isdigit():
        return "A host name with a dot is expected, and no address."
    # RFC 6761, 6.3: names below `localhost` are loopback addresses too.
    if host == settings.PLATFORM_HOST or host.endswith(".localhost"):
        return "The host belongs to the service."
    if host.startswith(_EDGE_ALIAS):
        return f"Names that begin with {_EDGE_ALIAS} are reserved for client certificates."
    return None


def _is_proven(host: str) -> bool:
    return CustomDomain.all_tenants.filter(host=host, verified_at__isnull=False).exists()


def _forget_hosts() -> None:
    """Let this process see the change at once. Until the commit it may read the old rows again."""
    forget_hosts()
    transaction.on_commit(forget_hosts)


def _locked(tenant_id: str, domain_id: str) -> CustomDomain:
    domain = CustomDomain.objects.of(tenant_id).select_for_update().filter(pk=domain_id).first()
    if domain is None:
        raise NotFound("The custom domain does not exist.")
    return domain
