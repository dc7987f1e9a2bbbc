"""`POST /login/unlink`: unlinks an identity from the user of the access token."""

from __future__ import annotations

from authapi.accounts.event_context import context_of
from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.protocols.legacy.holders import holder_of
from authapi.protocols.legacy.opting_in import require_any_grant
from authapi.protocols.legacy.policy import check_without_pages
from authapi.protocols.legacy.requests import LegacyRequest, Reply
from authapi.protocols.legacy.token_replies import NO_STORE
from foundation.change_context import change_context
from identity.services.failures import NotFound, ServiceError
from identity.services.users import unlink_identity

DONE = "OK"


def unlink(request: LegacyRequest) -> Reply:
    """Unlink the identity `user_id` from the user of the token. Raises `RequestRefused`, also for an identity of another user."""
    token, named = request.needed("access_token"), request.needed("user_id")
    holder = holder_of(token, request.host)
    require_any_grant(holder.client)
    check_without_pages(holder.client, holder.user)
    provider, _, identifier = named.partition("|")
    user = holder.user
    try:
        with change_context(context_of(request.host, holder.client, ip=request.address, user_agent=request.user_agent)):
            # Searches only the identities of this user, so that the error for another user's identity is the same as for an unknown
            # identity.
            unlink_identity(tenant_id=user.tenant_id, user_id=user.user_id, provider=provider, identifier=identifier)
    except NotFound as error:
        raise RequestRefused(LegacyCase.NOT_LINKED) from error
    except ServiceError as error:
        raise RequestRefused(LegacyCase.CANNOT_UNLINK, reason=str(error)) from error
    return Reply(text=DONE, headers={**NO_STORE, "Content-Type": "text/plain; charset=utf-8"})
