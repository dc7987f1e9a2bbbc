"""What users have allowed clients to do.

A user is asked once for each scope, claim and detail; the consent is stored until it is withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from authapi.details.within import all_within, is_within
from authapi.login.wish import Terms
from authapi.models import Client, Consent
from foundation.database.transactions import lock_rows, unit_of_work
from identity.models import User

# Details, such as payments, accumulate in a consent. Above this number, the oldest details are dropped. If a client requests a dropped
# detail again, the user is asked again.
_MOST_DETAILS = 50


def needs_consent(client: Client, user: User, terms: Terms) -> bool:
    """Tell whether the user must allow the terms before the client gets them.

    A first-party client needs no consent if the API allows clients to skip consent, or if only the profile is requested. Details that the
    consent does not contain yet always need a consent, even for a first-party client: a new amount, account or recipient is a new decision.
    """
    is_implied = client.is_first_party and terms.is_implied_for_first_party
    if is_implied and not terms.details:
        return False
    row = _row(client, user, terms.audience)
    asked = (row.asked or {}) if row is not None else {}
    if not is_implied and not set(terms.scopes) <= set(row.scopes if row is not None else ()):
        return True
    if not is_implied and not set(terms.claims) <= set(asked.get("claims", ())):
        return True
    return not all_within(terms.details, asked.get("details", ()))


@unit_of_work
def give_consent(client: Client, user: User, terms: Terms) -> None:
    """Add the terms to the consent of the user to this client."""
    # Without the lock, two concurrent answers would each overwrite the scopes of the other.
    lock_rows(User, [user.pk])
    row = _row(client, user, terms.audience)
    row = row or Consent(tenant_id=client.tenant_id, user=user, client=client, audience=terms.audience)
    row.scopes = _ordered((*row.scopes, *terms.scopes))
    if terms.details or terms.claims:
        row.asked = _joined(row.asked or {}, terms)
    row.save()


def _row(client: Client, user: User, audience: str) -> Consent | None:
    return Consent.objects.of(client.tenant_id).filter(user=user, client=client, audience=audience).first()


def _joined(before: dict[str, Any], terms: Terms) -> dict[str, Any]:
    kept = [each for each in before.get("details", ()) if not any(is_within(each, new) for new in terms.details)]
    joined = {
        "details": [*kept, *(dict(each) for each in terms.details)][-_MOST_DETAILS:],
        "claims": _ordered((*before.get("claims", ()), *terms.claims)),
    }
    return {name: value for name, value in joined.items() if value}


def _ordered(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
