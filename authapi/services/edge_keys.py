"""The secrets of the TLS edges (the proxies in front of custom domains). An edge sends its secret with each client certificate."""

from __future__ import annotations

from authapi.edge import mtls
from authapi.models import EdgeKey
from foundation.database.transactions import lock_rows, unit_of_work
from foundation.secrets import vault
from foundation.secrets.random_secrets import new_secret
from identity.models import CustomDomain
from identity.services.failures import NotFound


@unit_of_work
def renew_edge_key(*, tenant_id: str, domain_id: str) -> str:
    """Create a new secret for the TLS edge of a domain and return it.

    The secret is not shown again. The old secret becomes invalid within a second. Raises `NotFound`.
    """
    domain = _domain(tenant_id, domain_id)
    lock_rows(CustomDomain, [domain.pk])
    key = new_secret()
    EdgeKey.objects.of(tenant_id).filter(domain=domain).delete()
    EdgeKey(tenant_id=tenant_id, domain=domain, digest=vault.digest(key)).save(force_insert=True)
    mtls.edge_keys.forget((tenant_id, domain.host))
    return key


@unit_of_work
def remove_edge_key(*, tenant_id: str, domain_id: str) -> None:
    """Delete the secret of a domain's TLS edge, so that no certificate that the edge forwards is trusted. Raises `NotFound`."""
    domain = _domain(tenant_id, domain_id)
    EdgeKey.objects.of(tenant_id).filter(domain=domain).delete()
    mtls.edge_keys.forget((tenant_id, domain.host))


def _domain(tenant_id: str, domain_id: str) -> CustomDomain:
    domain = CustomDomain.objects.of(tenant_id).filter(pk=domain_id).first()
    if domain is None:
        raise NotFound("There is no such domain.")
    return domain
