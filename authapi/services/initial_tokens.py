"""Initial access tokens: an administrator creates them, and applications use them to register themselves (RFC 7591, 3).

A token is shown once.
"""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from authapi.models import InitialAccessToken
from foundation.database.transactions import lock_rows, unit_of_work
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.services.failures import Invalid, NotFound
from identity.services.saving import validated_save

MOST_DAYS = 365


@unit_of_work
def create_initial_token(*, tenant_id: str, name: str, days: int, most_uses: int | None = None) -> tuple[InitialAccessToken, str]:
    """Create a token; return its row, and the token in plain text. Raises `Invalid`."""
    if not 1 <= days <= MOST_DAYS:
        raise Invalid({"days": [f"1 to {MOST_DAYS}."]})
    token = new_secret()
    row = InitialAccessToken(tenant_id=tenant_id, name=name, most_uses=most_uses, digest=digest_of(token))
    row.expires_at = timezone.now() + timedelta(days=days)
    validated_save(row)
    return row, token


@unit_of_work
def revoke_initial_token(*, tenant_id: str, token_id: int) -> InitialAccessToken:
    """Revoke a token, so that no further application registers with this token.

    Applications that have used the token stay registered. Raises `NotFound`.
    """
    row = _row(tenant_id, token_id)
    if row.revoked_at is None:
        row.revoked_at = timezone.now()
        row.save(update_fields=["revoked_at"])
    return row


@unit_of_work
def delete_initial_token(*, tenant_id: str, token_id: int) -> None:
    """Delete a token; applications that registered with it stay registered. Raises `NotFound`."""
    _row(tenant_id, token_id).delete()


def is_initial_token(*, tenant_id: str, token: str) -> bool:
    """Tell whether a token is valid now. Does not count a use."""
    row = InitialAccessToken.objects.of(tenant_id).filter(digest=digest_of(token)).first()
    return row is not None and row.is_usable


@unit_of_work
def use_initial_token(*, tenant_id: str, token: str) -> InitialAccessToken | None:
    """Count a use and return the row; None for a token that is unknown, used up, expired or revoked.

    Runs in the transaction of the registration, so that a refused registration counts no use.
    """
    rows = InitialAccessToken.objects.of(tenant_id)
    row = rows.select_for_update(no_key=True).filter(digest=digest_of(token)).first()
    if row is None or not row.is_usable:
        return None
    row.use_count, row.last_used_at = row.use_count + 1, timezone.now()
    row.save(update_fields=["use_count", "last_used_at"])
    return row


def _row(tenant_id: str, token_id: int) -> InitialAccessToken:
    lock_rows(InitialAccessToken, [token_id])
    row = InitialAccessToken.objects.of(tenant_id).filter(pk=token_id).first()
    if row is None:
        raise NotFound("There is no such token.")
    return row
