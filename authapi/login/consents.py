"""What users have allowed clients to do: asked once for each scope, kept until somebody takes it back."""

from __future__ import annotations

from collections.abc import Iterable

from authapi.models import Client, Consent
from authapi.tokens.entitlements import UserEntitlement
from foundation.database.transactions import lock_rows, unit_of_work
from identity.models import User

_SETTING = "skip_consent_for_verifiable_first_party_clients"


def needs_consent(client: Client, user: User, entitlement: UserEntitlement) -> bool:
    """Tell whether the user must be asked before the client gets these scopes.

    A client of the tenant itself is not asked for where the API allows that, nor for the profile alone.
    """
    resource = entitlement.resource
    if client.is_first_party and (resource is None or resource.settings.get(_SETTING, True)):
        return False
    return not set(entitlement.scopes) <= _allowed(client, user, entitlement.audience)


@unit_of_work
def give_consent(client: Client, user: User, entitlement: UserEntitlement) -> None:
    """Remember that the user allowed these scopes, besides those allowed before."""
    # Two answers at once would each forget the scopes of the other.
    lock_rows(User, [user.pk])
    rows = Consent.objects.of(client.tenant_id)
    row = rows.filter(user=user, client=client, audience=entitlement.audience).first()
    row = row or Consent(tenant_id=client.tenant_id, user=user, client=client, audience=entitlement.audience)
    row.scopes = _ordered((*row.scopes, *entitlement.scopes))
    row.save()


def _allowed(client: Client, user: User, audience: str) -> set[str]:
    row = Consent.objects.of(client.tenant_id).filter(user=user, client=client, audience=audience).first()
    return set(row.scopes) if row is not None else set()


def _ordered(scopes: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(scopes))
