"""`POST /tokeninfo`: the profile of the user of an id token. New clients read the token itself, or call `/userinfo`."""

from __future__ import annotations

import time
from typing import Any

from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.models import Client
from authapi.protocols.legacy.opting_in import require_any_grant
from authapi.protocols.legacy.policy import check_without_pages
from authapi.protocols.legacy.requests import LegacyRequest, Reply, client_named
from authapi.protocols.legacy.token_replies import NO_STORE
from authapi.tokens.id_token_hints import own_claims
from authapi.tokens.profile_claims import profile_claims
from identity.models import User

# All claims about a user that a token can contain. Metadata is not included.
_SCOPES = ("profile", "email", "phone", "created_at", "identities")


def token_info(request: LegacyRequest) -> Reply:
    """Return the profile of the user of an id token. Raises `RequestRefused`."""
    token, tenant_id = request.needed("id_token"), request.host.tenant_id
    try:
        claims = own_claims(token, tenant_id=tenant_id)
    except RequestRefused as refused:
        raise RequestRefused(LegacyCase.INVALID_ID_TOKEN) from refused
    client = client_named(tenant_id, claims["aud"])
    user = User.objects.of(tenant_id).select_related("connection").filter(user_id=claims["sub"]).first()
    expires_at = claims.get("exp")
    if client is None or user is None or not isinstance(expires_at, int) or expires_at <= time.time():
        raise RequestRefused(LegacyCase.INVALID_ID_TOKEN)
    require_any_grant(client)
    check_without_pages(client, user)
    return Reply(_profile(client, user), headers=NO_STORE)


def _profile(client: Client, user: User) -> dict[str, Any]:
    clients = Client.objects.of(user.tenant_id).filter(is_global=True, revoked_at__isnull=True)
    global_id = clients.order_by("created", "pk").values_list("client_id", flat=True).first()
    ids = {"user_id": user.user_id, "clientID": client.client_id, "global_client_id": global_id}
    return profile_claims(user, _SCOPES, writes_times_as_text=True) | ids
