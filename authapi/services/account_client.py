"""The client of the account page of a tenant.

The service creates the client at the first visit of the page and hides the client from every list. The client has no secret, no grant type
and no callback, so the endpoints of the protocols refuse this client. Decision: docs/adr/0118.
"""

from __future__ import annotations

from authapi.models import Client
from foundation.database.transactions import lock_rows, unit_of_work
from identity.models import Tenant

NAME = "Account"


def account_client(tenant_id: str) -> Client:
    """Return the client of the tenant's account page. Creates it if it is missing."""
    return Client.objects.of(tenant_id).filter(is_account_page=True).first() or _made(tenant_id)


@unit_of_work
def _made(tenant_id: str) -> Client:
    # Two users may open the page for the first time at the same moment; only one of the two requests may create the client.
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
