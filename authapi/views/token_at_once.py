"""Fast path: `/oauth/token` for the grants client_credentials and refresh_token, on the event loop with cached values.

The plain path is `authapi.views.token`, which runs in a thread. Each of its steps competes for the interpreter lock with the event loop and
other threads. Both paths share the code for the grant, the client authentication and the contents of the token. The fast path sends only
successful answers: a request that must be refused starts over on the plain path. The measurements are in docs/performance.md.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson
from django.db import OperationalError

from authapi import client_auth
from authapi.compliance.levels import NONE, answers_as_standard, level_of
from authapi.details.types import MEMBER as DETAILS
from authapi.edge.bodies import MalformedBody, parse_body
from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase
from authapi.grants.client_credentials import ClientCredentialsGrant
from authapi.grants.refresh_at_once import refresh_at_once
from authapi.grants.refresh_token import RefreshTokenGrant
from authapi.grants.token_grant import TokenAnswer
from authapi.models import Client
from authapi.possession.issuing import count_proof, nonce_headers, read_key
from authapi.possession.presented import HEADER as PROOF_HEADER
from authapi.possession.proofs import Proof
from authapi.protocols.oauth import engine
from authapi.token_request import TokenRequest
from authapi.tokens.bindings import token_type
from authapi.tokens.fast_signing import Signing
from authapi.tokens.minting import signing_of_order, token_order
from authapi.views.chain import Answer, Call
from authapi.views.deciding import Decided, deciding
from foundation.database.loop_queries import Unanswered
from foundation.memory import executor
from foundation.memory.short_work import short_work
from foundation.memory.ttl_cache import Cold
from foundation.tenancy import tenant_bound

PATH = "/oauth/token"
# A request with one of these parameters takes the plain path. `DETAILS` needs the rules for authorization details. `resource` names the API
# in place of `audience`. The use of a `client_assertion` must first be written to the database.
_FURTHER = frozenset({DETAILS, "resource", "client_assertion"})
# RFC 6749, 5.1.
FRESH = {"Cache-Control": "no-store", "Pragma": "no-cache"}


def token_request(call: Call) -> TokenRequest:
    """Return the contents of a request to the token endpoint. Raises `RequestRefused`."""
    try:
        form = parse_body(call.headers.get("content-type", ""), call.body)
    except MalformedBody as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=str(error)) from error
    return TokenRequest(host=call.host, address=call.address, headers=call.headers, form=form, charge=call.charge)


async def token_at_once(call: Call) -> Answer:
    """Answer a request for a machine token, or the exchange of a refresh token.

    Raises `Cold` for other requests, `RequestRefused` before any change, and `Decided` after a change.
    """
    request = token_request(call)
    grant = _GRANTS.get(engine.requested_grant(request))
    if grant is None or not _FURTHER.isdisjoint(request.form):
        raise Cold
    with tenant_bound(call.host.tenant_id):
        client = client_auth.authenticate(request)
        if level_of(client.settings) != NONE or answers_as_standard(client.settings):
            # A client with a compliance level or with standard answers gets other refusals and headers, which the endpoint produces.
            raise Cold
        if client.is_public:
            # The authentication of a client counts the request against the tenant's limit. A public client does not authenticate, so its
            # request is not counted yet. Check the limit before the refresh token is exchanged.
            call.charge.require_room()
        if not client.allows_grant_type(engine.requested_grant(request)):
            raise Cold
        return await grant(request, client)


async def _machine_token(request: TokenRequest, client: Client) -> Answer:
    proof = None
    if PROOF_HEADER in request.headers:
        request, proof = read_key(request, path=PATH)
    grant: ClientCredentialsGrant = engine.server().grant_types[ClientCredentialsGrant.name]
    answer = grant.answer(request, client)
    order = token_order(answer.access, client=client, host=request.host)
    sign = signing_of_order(order, tenant_id=request.host.tenant_id, signature=answer.access.signature)
    if proof is None:
        # Sign on the event loop: a signature takes a quarter of a millisecond, and a thread would add an eighth of a millisecond.
        return _answer(answer, {"access_token": sign()}, FRESH)
    # Use a thread: without Redis, the use of the DPoP proof is recorded in the database, and this query would block the event loop.
    work = partial(executor.and_give_back, partial(_proven_and_signed, request, client, proof, sign))
    token, headers = await short_work().run(work)
    return _answer(answer, {"access_token": token}, headers)


async def _refreshed(request: TokenRequest, client: Client) -> Answer:
    if PROOF_HEADER in request.headers:
        # A request with a DPoP proof takes the plain path. The fast path would record the use of the proof first, and then find out whether
        # a concurrent request has changed the row of the refresh token. In that case the request could not start over on the plain path,
        # because the proof is already used.
        raise Cold
    try:
        answer, signings = await refresh_at_once(request, client)
    except Unanswered as error:
        raise Decided(OperationalError()) from error
    with deciding():
        return _answer(answer, {name: sign() for name, sign in signings.items()}, FRESH)


_GRANTS = {ClientCredentialsGrant.name: _machine_token, RefreshTokenGrant.name: _refreshed}


def _answer(answer: TokenAnswer, signed: dict[str, str], headers: dict[str, str]) -> Answer:
    """Return the answer that the plain path (`engine`, `TokenGrant`) would give, with the members in the same order."""
    access = answer.access
    members: dict[str, Any] = {
        "access_token": signed.pop("access_token"), "expires_in": access.seconds, "token_type": token_type(access.confirmation)
    }  # fmt: skip
    if answer.scopes is not None:
        members["scope"] = " ".join(answer.scopes)
    return Answer(200, orjson.dumps(members | answer.beside | signed), headers)


def _proven_and_signed(request: TokenRequest, client: Client, proof: Proof, sign: Signing) -> tuple[str, dict[str, str]]:
    """Record the use of the proof and sign. Raises errors as `Decided`, because a recorded proof would be refused the second time."""
    with deciding():
        count_proof(request, proof, client)
        return sign(), FRESH | nonce_headers(request)
