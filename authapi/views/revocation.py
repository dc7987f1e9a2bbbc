"""`POST /oauth/revoke`: a client gives back a refresh token, and with it everything of its family (RFC 7009)."""

from __future__ import annotations

from authapi import client_auth
from authapi.bodies import MalformedBody, parse_body
from authapi.failures import Case, RequestRefused
from authapi.grants.user_grant import required
from authapi.models import Client, RefreshToken
from authapi.random_secrets import digest_of
from authapi.services.refresh_tokens import revoke_lineage
from authapi.token_request import TokenRequest
from authapi.views.chain import Answer, Call, hot_endpoint
from identity.tenancy import tenant_bound

_EMPTY = Answer(200, b"", {"Content-Type": "application/json", "Cache-Control": "no-store", "Pragma": "no-cache"})


def _revoke(call: Call) -> Answer:
    try:
        form = parse_body(call.headers.get("content-type", ""), call.body)
    except MalformedBody as error:
        raise RequestRefused(Case.MALFORMED_REQUEST, reason=str(error)) from error
    request = TokenRequest(host=call.host, address=call.address, headers=call.headers, form=form)
    with tenant_bound(call.host.tenant_id):
        client = _client_of(request)
        token = required(request, "token")
        row = RefreshToken.objects.of(call.host.tenant_id).filter(token_checksum=digest_of(token), application=client).first()
        if row is not None:
            # RFC 7009, 2.1: the access tokens of the same grant end as well.
            revoke_lineage(tenant_id=call.host.tenant_id, lineage=row.lineage)
    # 2.2: an unknown token, or that of another client, is answered like one that was revoked.
    return _EMPTY


def _client_of(request: TokenRequest) -> Client:
    try:
        return client_auth.authenticate(request)
    except RequestRefused as refused:
        if refused.case is not Case.WRONG_CLIENT_AUTHENTICATION:
            raise
        # This endpoint says it as RFC 7009, 2.2.1 does.
        raise RequestRefused(Case.WRONG_CLIENT_AT_REVOCATION) from refused


revocation = hot_endpoint(_revoke, name="revoke", methods=("POST",))
