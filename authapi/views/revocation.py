"""`POST /oauth/revoke` (RFC 7009): a client gives back an access token, or a refresh token with everything of its family."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from authapi import client_auth
from authapi.edge.bodies import MalformedBody, parse_body
from authapi.failures import Case, RequestRefused
from authapi.grants.user_grant import required
from authapi.models import AccessToken, Client, RefreshToken
from authapi.token_request import TokenRequest
from authapi.tokens.refresh_tokens import revoke_lineage
from authapi.tokens.revocation import revoke_access_token
from authapi.tokens.token_state import token_states
from authapi.tokens.verifying import TokenRefused, verify_own_token
from authapi.views.chain import Answer, Call, hot_endpoint
from foundation.secrets.random_secrets import digest_of
from foundation.tenancy import tenant_bound
from identity.hosts import HostMatch

_EMPTY = Answer(200, b"", {"Content-Type": "application/json", "Cache-Control": "no-store", "Pragma": "no-cache"})


def _revoke(call: Call) -> Answer:
    try:
        form = parse_body(call.headers.get("content-type", ""), call.body)
    except MalformedBody as error:
        raise RequestRefused(Case.MALFORMED_REQUEST, reason=str(error)) from error
    request = TokenRequest(host=call.host, address=call.address, headers=call.headers, form=form, charge=call.charge)
    with tenant_bound(call.host.tenant_id):
        client = _client_of(request)
        token = required(request, "token")
        revoke = _revoke_jwt if token.count(".") == 2 else _revoke_stored
        is_own = revoke(call.host, client, token)
    # 2.2: an unknown token, or one of another client, is answered like one that was revoked. It proves nothing about a public
    # client; a confidential one has been charged when it authenticated.
    return _EMPTY if is_own else replace(_EMPTY, is_proof=False)


def _revoke_jwt(host: HostMatch, client: Client, token: str) -> bool:
    """End one access token of this client. Return False for a token that is not valid or belongs to another client."""
    try:
        claims = verify_own_token(token, host=host)
    except TokenRefused:
        return False
    if claims.client_id != client.client_id:
        return False
    expires_at = datetime.fromtimestamp(claims.expires_at, tz=UTC)
    revoke_access_token(tenant_id=host.tenant_id, jti=claims.jti, expires_at=expires_at)
    token_states.forget((host.tenant_id, claims.client_id, claims.jti))
    return True


def _revoke_stored(host: HostMatch, client: Client, token: str) -> bool:
    """End a refresh token with its whole family, or one opaque access token. Return False for a token that is not the client's."""
    tenant_id = host.tenant_id
    own = {"token_checksum": digest_of(token), "application": client}
    row = RefreshToken.objects.of(tenant_id).filter(**own).first()
    if row is not None:
        # RFC 7009, 2.1: the access tokens of the same grant end as well.
        revoke_lineage(tenant_id=tenant_id, lineage=row.lineage)
        return True
    deleted_count, _ = AccessToken.objects.of(tenant_id).filter(**own).delete()
    return deleted_count > 0


def _client_of(request: TokenRequest) -> Client:
    try:
        return client_auth.authenticate(request)
    except RequestRefused as refused:
        if refused.case is not Case.WRONG_CLIENT_AUTHENTICATION:
            raise
        # This endpoint says it as RFC 7009, 2.2.1 does.
        raise RequestRefused(Case.WRONG_CLIENT_AT_REVOCATION) from refused


revocation = hot_endpoint(_revoke, name="revoke", methods=("POST",))
