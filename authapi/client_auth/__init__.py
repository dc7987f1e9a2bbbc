"""Who is asking: the registered client behind a request, proven by the one method it is registered for.

Each method is a module that says what a request presents; `METHODS` is their order. Assertions and client certificates
take their place before `public`, which fits every request that names a client.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from authapi import throttling
from authapi.client_auth import public, secret_basic, secret_post
from authapi.client_auth.credential import Credential, MalformedCredential
from authapi.failures import Case, RequestRefused
from authapi.models import Client
from authapi.remembered import Remembered
from authapi.token_request import TokenRequest
from identity import vault

METHODS: tuple[Callable[[TokenRequest], Credential | None], ...] = (secret_basic.presented, secret_post.presented, public.presented)
_CLIENT_ID = re.compile(r"[A-Za-z0-9]{1,64}")
# Shorter than elsewhere: a token minted for a version of the client that has passed is refused from the start.
_REMEMBERED_SECONDS = 0.2


def _load_client(key: tuple[str, str]) -> Client:
    tenant_id, client_id = key
    return Client.objects.of(tenant_id).get(client_id=client_id)


# Keyed by tenant and client id, so a client of one tenant is unknown at another. Unknown ids are not remembered.
clients: Remembered[tuple[str, str], Client] = Remembered(_load_client, seconds=_REMEMBERED_SECONDS)


def authenticate(request: TokenRequest) -> Client:
    """Return the client of this request. Raises `RequestRefused`; every failure counts against the sender's address."""
    throttling.check_failures(request.host.tenant_id, request.address)
    try:
        credential = _presented(request)
    except MalformedCredential as error:
        raise _failed(request) from error
    client = _proven(request.host.tenant_id, credential)
    if client is None:
        raise _failed(request)
    return client


def _presented(request: TokenRequest) -> Credential:
    found = [credential for presented in METHODS if (credential := presented(request)) is not None]
    proofs = [credential for credential in found if credential.method != public.METHOD]
    if len(proofs) > 1:
        # RFC 6749, 2.3: a client must not use more than one method in a request.
        raise RequestRefused(Case.MALFORMED_REQUEST, reason="More than one client authentication method was used.")
    credential = next(iter(proofs or found), None)
    if credential is None or not credential.client_id:
        raise RequestRefused(Case.MISSING_CLIENT_AUTHENTICATION)
    named = request.text("client_id")
    if named is not None and named != credential.client_id:
        raise RequestRefused(Case.MALFORMED_REQUEST, reason="The client_id differs from the authenticated client.")
    return credential


def _proven(tenant_id: str, credential: Credential) -> Client | None:
    key = (tenant_id, credential.client_id)
    client = _known(key)
    if _is_proof(client, credential):
        return client
    # The secret may have been rotated, by another process, within the second that this one remembers.
    client = _known(key, max_age=0.0)
    return client if _is_proof(client, credential) else None


def _known(key: tuple[str, str], *, max_age: float | None = None) -> Client | None:
    if _CLIENT_ID.fullmatch(key[1]) is None:
        return None
    try:
        return clients.get(key, max_age=max_age)
    except Client.DoesNotExist:
        clients.forget(key)
        return None


def _is_proof(client: Client | None, credential: Credential) -> bool:
    # An unknown client costs the same comparison as a known one, so that time tells nothing.
    stored = client.secret_digest if client is not None else ""
    matches = [vault.digest_matches(secret, stored) for secret in credential.secrets]
    if client is None or not client.is_usable(None) or credential.method != client.token_endpoint_auth_method:
        return False
    return client.is_public or any(matches)


def _failed(request: TokenRequest) -> RequestRefused:
    throttling.count_failure(request.host.tenant_id, request.address)
    return RequestRefused(Case.WRONG_CLIENT_AUTHENTICATION)
