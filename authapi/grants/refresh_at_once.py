"""Fast path: runs an ordinary exchange of a refresh token on the event loop, with the rules of the grant.

The plain path is `RefreshTokenGrant`, in a thread. `authapi.tokens.refresh_at_once` describes what the fast path reads and writes, and why
this is as safe as on the plain path. The fast path never sends a refusal: a request that it cannot serve starts over on the plain path. The
measurements are in docs/performance.md.
"""

from __future__ import annotations

from django.utils import timezone

from authapi.grants.refresh_token import RefreshTokenGrant, asked, is_holder
from authapi.grants.token_grant import TokenAnswer
from authapi.grants.user_grant import access_for, sender_of, stored_login
from authapi.models import Client
from authapi.token_request import TokenRequest
from authapi.tokens.fast_signing import Signing
from authapi.tokens.id_tokens import id_token_signing
from authapi.tokens.minting import signing_of_order, token_order
from authapi.tokens.refresh_at_once import read_refresh_token, renew_at_once
from authapi.tokens.refresh_tokens import has_ended, policy_of
from foundation.memory.ttl_cache import Cold


async def refresh_at_once(request: TokenRequest, client: Client) -> tuple[TokenAnswer, dict[str, Signing]]:
    """Store and commit the exchange.

    Return the answer. For each member that will contain a token, also return the function that signs this token. Raises `Cold` or
    `RequestRefused` before any change. Raises `Unanswered` if it is unknown whether the exchange was committed.
    """
    row = await read_refresh_token(tenant_id=request.host.tenant_id, token=request.required("refresh_token"))
    policy, now = policy_of(client), timezone.now()
    if row.application_id != client.pk or row.user.blocked or row.organization_id is not None or row.asked:
        raise Cold
    if has_ended(row, policy, now=now) or not is_holder(row, request, client, now=now):
        raise Cold
    login = asked(stored_login(row, request, client, grant=RefreshTokenGrant.name), request, policy)
    login, access, until = access_for(login)
    if login.asked is not None and login.asked.details:
        raise Cold
    # Prepare the signatures before the exchange is stored, because the refresh token must stay valid if the answer cannot be signed.
    order = token_order(access, client=client, host=request.host)
    signings = {"access_token": signing_of_order(order, tenant_id=request.host.tenant_id, signature=access.signature)}
    if login.is_sign_in:
        signings["id_token"] = id_token_signing(login)
    successor = await renew_at_once(row, access=access, until=until, policy=policy, sender=sender_of(request))
    return TokenAnswer(access, login.scopes, {} if successor is None else {"refresh_token": successor}), signings
