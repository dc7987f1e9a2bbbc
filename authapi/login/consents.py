"""What users have allowed clients to do: asked once for each scope, kept until it is withdrawn."""

from __future__ import annotations

from collections.abc import Iterable

from authapi.login.wish import Terms
from authapi.models import Client, Consent
from foundation.database.transactions import lock_rows, unit_of_work
from identity.models import User


def needs_consent(client: Client, user: User, terms: Terms) -> bool:
    """Tell whether the user must be asked before the client gets these scopes.

    A client of the tenant itself is not asked for where the API allows that, nor for the profile alone.
    """
    if client.is_first_party and terms.is_implied_for_first_party:
        return False
    return not set(terms.scopes) <= _allowed(client, user, terms.audience)


@unit_of_work
def give_consent(client: Client, user: User, terms: Terms) -> None:
    """Remember that the user allowed these scopes, besides those allowed before."""
    # Two answers at once would each forget the scopes of the other.
    lock_rows(User, [user.pk])
    rows = Consent.objects.of(client.tenant_id)
    row = rows.filter(user=user, client=client, audience=terms.audience).first()
    row = row or Consent(tenant_id=client.tenant_id, user=user, client=client, audience=terms.audience)
    row.scopes = _ordered((*row.scopes, *terms.scopes))
    row.save()


def _allowed(client: Client, user: User, audience: str) -> set[str]:
    row = Consent.objects.of(client.tenant_id).filter(user=user, client=client, audience=audience).first()
    return set(row.scopes) if row is not None else set()


def _ordered(scopes: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(scopes))
