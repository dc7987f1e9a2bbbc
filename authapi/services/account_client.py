"""The client behind the account page of a tenant: made by the service when a person first comes, and hidden from every list.

It has no secret, no grant and no callback, so no endpoint of a protocol serves it. Decision: docs/adr/0118.
"""

from __future__ import annotations

from authapi.models import Client
from foundation.database.transactions import lock_rows, unit_of_work
from identity.models import Tenant

NAME = "Account"


def account_client(tenant_id: str) -> Client:
    """Return the client of the tenant's account page, made where it is missing."""
    return Client.objects.of(tenant_id).filter(is_account_page=True).first() or _made(tenant_id)


@unit_of_work
def _made(tenant_id: str) -> Client:
    # Two people may come first at once.
    lock_rows(Tenant, [tenant_id])
    found = Client.objects.of(tenant_id).filter(is_account_page=True).first()
    if found is not None:
        return found
    client = Client(
        tenant_id=tenant_id,
        name=NAME,
        is_account_page=True,
        token_endpoint_auth_method=Client.AuthMethod.NONE,
        grant_types=[],
    )
    client.save(force_insert=True)
    return client
