"""An assertion of a provider counts once: its id is remembered until it ends, for every process of the service."""

from __future__ import annotations

from authapi.client_auth.replays import use_once
from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.responses import Accepted
from identity.models import Connection


def use_assertion(connection: Connection, found: Accepted) -> None:
    """Use an assertion up. Raises `UpstreamFailed` for one that was used before.

    Ids are remembered per connection: another provider of the tenant may make the same one.
    """
    is_first = use_once(
        tenant_id=connection.tenant_id,
        client_id=f"assertion:{connection.pk}",
        jti=found.assertion.id,
        until=found.until.timestamp(),
    )
    if not is_first:
        raise UpstreamFailed(
            LoginCase.UPSTREAM_TOKEN_REFUSED, "The assertion was used before: the page was sent twice, or an attacker has a copy of it."
        )
