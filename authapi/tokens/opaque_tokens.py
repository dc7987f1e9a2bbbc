"""Opaque access tokens, with which a client reads the profile of one user. Rows store only the digests of tokens."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from authapi.models import AccessToken
from authapi.tokens.user_tokens import UserIssue
from foundation.secrets.random_secrets import digest_of, new_secret


def store_opaque_token(issue: UserIssue, *, seconds: int) -> str:
    """Create an opaque token for a login and return it. Runs in the transaction of the caller."""
    text = new_secret()
    row = AccessToken(
        tenant_id=issue.host.tenant_id,
        user=issue.user,
        application=issue.client,
        scope=" ".join(issue.scopes),
        expires=timezone.now() + timedelta(seconds=seconds),
        lineage=issue.lineage,
        confirmation=dict(issue.confirmation) if issue.confirmation else None,
        asked=issue.asked.state if issue.asked else None,
    )
    # The OAuth toolkit computes the checksum (the digest) from the text in this attribute, and stores only the checksum. The column for the
    # token stays empty.
    row._raw_token = text
    row.save(force_insert=True)
    return text


def find_opaque_token(*, tenant_id: str, token: str) -> AccessToken | None:
    """Return the row of a token, with its user and client; None for an unknown or expired token, or a token of another tenant."""
    alive = AccessToken.objects.of(tenant_id).filter(token_checksum=digest_of(token), expires__gt=timezone.now())
    return alive.select_related("user", "application").first()
