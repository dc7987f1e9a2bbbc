"""Each assertion of a provider is accepted once: the service stores the id of the assertion until the assertion expires."""

from __future__ import annotations

from authapi.client_auth.replays import use_once
from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.responses import Accepted
from identity.models import Connection


def use_assertion(connection: Connection, found: Accepted) -> None:
    """Record the use of an assertion. Raises `UpstreamFailed` if the assertion was used before.

    Ids are recorded per connection, because another provider of the tenant may issue the same id.
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
