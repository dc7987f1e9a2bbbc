"""Client authentication: finds the registered client of a request and checks the one method for which the client is registered.

Each method is a module that extracts the credential of a request. `METHODS` lists them in the order in which they are tried. The last two
methods, a forwarded certificate and the id of a public client, apply only to requests that have no other credential.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from authapi.client_auth import assertion, mutual_tls, public, secret_basic, secret_post
from authapi.client_auth.credential import Assertion, Credential, MalformedCredential
from authapi.client_auth.replays import use_once
from authapi.clients.origins import is_origin_allowed
from authapi.compliance.enforcing import check_client
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.models import Client, ClientCredential
from authapi.token_request import TokenRequest
from authapi.tokens.keys import trust
from foundation.memory.ttl_cache import Remembered
from foundation.secrets import vault

METHODS: tuple[Callable[[TokenRequest], Credential | None], ...] = (
    secret_basic.presented,
    secret_post.presented,
    assertion.presented,
    mutual_tls.presented,
    public.presented,
)
_AMBIENT = (mutual_tls.CA_SIGNED, mutual_tls.SELF_SIGNED, public.METHOD)
# Body parameters that authenticate the client. Other code must never read them as parameters.
AUTHENTICATION_PARAMETERS = frozenset({"client_secret", "client_assertion", "client_assertion_type"})
_CLIENT_ID = re.compile(r"[A-Za-z0-9]{1,64}")
# How long a client stays cached. After a change of a client, a process may use the old version of the client until this time ends. A token
# that the process issues with the old version is refused when the token is used.
_REMEMBERED_SECONDS = 0.2


def _load_client(key: tuple[str, str]) -> Client:
    tenant_id, client_id = key
    client = Client.objects.of(tenant_id).get(client_id=client_id)
    used = client.used_credential_ids
    if used:
        found = {row.pk: row for row in ClientCredential.objects.of(tenant_id).filter(client=client, pk__in=used)}
        client.proofs = tuple(found[key] for key in client.proof_ids if key in found)
        client.request_keys = tuple(found[key] for key in client.request_key_ids if key in found)
    return client


# Keyed by tenant and client id, so that a client is unknown at other tenants. Unknown ids are not cached.
clients: Remembered[tuple[str, str], Client] = Remembered(_load_client, seconds=_REMEMBERED_SECONDS)


def authenticate(request: TokenRequest) -> Client:
    """Return the client of this request. If the client has authenticated, count the request against its tenant. Raises `RequestRefused`.

    A public client does not authenticate: the code or refresh token that it sends is checked later.
    """
    try:
        credentials = _presented(request)
    except MalformedCredential as error:
        raise RequestRefused(OAuthCase.WRONG_CLIENT_AUTHENTICATION) from error
    client = _proven(request.host.tenant_id, credentials)
    if client is None:
        raise RequestRefused(OAuthCase.WRONG_CLIENT_AUTHENTICATION)
    if request.charge is not None and not client.is_public:
        request.charge.prove()
    check_origin(client, request.headers.get("origin"))
    if client.settings.get("compliance_level"):
        proof = credentials[0].assertion
        check_client(client, proof.claims if proof else None, issuer=request.host.issuer)
    return client


def named_client(request: TokenRequest) -> Client | None:
    """Return the client that is named in a request, even if it is not authenticated: the settings of this client determine the format of an
    error.

    None if the client is unknown.
    """
    try:
        named = _presented(request)[0].client_id
    except (MalformedCredential, RequestRefused):
        # The assertion has no subject, or the request has no credential. The body may still name the client.
        named = str(request.form.get("client_id") or "")
    return _known((request.host.tenant_id, named))


def check_origin(client: Client, origin: str | None) -> None:
    """Raise `RequestRefused` if the request comes from a web page that the client does not allow."""
    if client.allowed_origins:
        known = (*client.redirect_uris.split(), *(client.settings.get("web_origins") or ()))
        if not is_origin_allowed(origin, allowed=client.allowed_origins.split(), known=known):
            raise RequestRefused(OAuthCase.ORIGIN_NOT_ALLOWED, origin=str(origin)[:200])


def _presented(request: TokenRequest) -> list[Credential]:
    """Return the possible credentials: only the explicit credential if there is one, otherwise the forwarded certificate, the client id, or
    both.
    """
    found = [credential for presented in METHODS if (credential := presented(request)) is not None]
    proofs = [credential for credential in found if credential.method not in _AMBIENT]
    if len(proofs) > 1:
        # RFC 6749, 2.3: a client must not use more than one method in a request.
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="More than one client authentication method was used.")
    credentials = proofs or found
    if not credentials or not credentials[0].client_id:
        raise RequestRefused(OAuthCase.MISSING_CLIENT_AUTHENTICATION)
    named = request.text("client_id")
    if named is not None and named != credentials[0].client_id:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The client_id differs from the authenticated client.")
    return credentials


def _proven(tenant_id: str, credentials: list[Credential]) -> Client | None:
    key = (tenant_id, credentials[0].client_id)
    client = _known(key)
    if any(_is_proof(tenant_id, client, credential) for credential in credentials):
        return client
    # Another process may have changed the secret or the keys since this process cached them.
    client = _known(key, max_age=0.0)
    return client if any(_is_proof(tenant_id, client, credential) for credential in credentials) else None


def _known(key: tuple[str, str], *, max_age: float | None = None) -> Client | None:
    if _CLIENT_ID.fullmatch(key[1]) is None:
        return None
    try:
        return clients.get(key, max_age=max_age)
    except Client.DoesNotExist:
        clients.forget(key)
        return None


def _is_proof(tenant_id: str, client: Client | None, credential: Credential) -> bool:
    # The secret of an unknown client is compared, too, so that the response time does not reveal whether the client exists.
    stored = client.secret_digest if client is not None else ""
    matches = [vault.digest_matches(secret, stored) for secret in credential.secrets]
    is_signed = credential.assertion is not None and assertion.is_signed(client, credential.assertion)
    if client is None or not client.is_usable(None) or credential.method != client.auth_method:
        return False
    if credential.assertion is not None:
        return is_signed and _is_first_use(tenant_id, client, credential.assertion)
    if credential.certificate is not None:
        return any(mutual_tls.is_registered(row, credential.certificate) for row in client.active_credentials)
    return client.is_public or any(matches)


def _is_first_use(tenant_id: str, client: Client, sent: Assertion) -> bool:
    # This check is the last one, so that an assertion does not count as used if another check refuses it.
    if not assertion.is_acceptable(sent, client_id=client.client_id, hosts=trust.get(tenant_id).hosts, now=assertion.now()):
        return False
    return use_once(tenant_id=tenant_id, client_id=client.client_id, jti=sent.claims["jti"], until=assertion.expires_at(sent))
