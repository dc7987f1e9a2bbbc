"""Creates clients that register themselves, and replaces or ends their registrations.

To replace or end its registration, a client uses its registration access token. Rows store only the digest of this token. Self-registered
clients are third-party clients and never global. Replacing a registration changes no settings that only administrators can set.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from authapi.models import Client, ClientCredential
from authapi.services import clients
from authapi.services.client_credentials import NewCredential, add_credential
from foundation.database.transactions import unit_of_work
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.services.failures import NotFound

_METHODS, _SIGNED = "client_authentication_methods", "signed_request_object"


@dataclass(frozen=True)
class Registration:
    """The checked registration of an application: columns, settings by their names on the wire (None clears a setting), and keys.

    `method` is the authentication method that uses `proofs`; empty if the client has a secret or does not authenticate. `request_keys`
    verify its signed requests, and `signs_requests` means that every request is signed.
    """

    columns: Mapping[str, Any]
    settings: Mapping[str, Any]
    method: str = ""
    proofs: Sequence[NewCredential] = ()
    request_keys: Sequence[NewCredential] = ()
    signs_requests: bool = False


@dataclass(frozen=True)
class Registered:
    """A client with values that are shown once: its new secret, if any, and its registration access token."""

    client: Client
    secret: str = field(repr=False)
    token: str = field(repr=False)


@unit_of_work
def register_client(*, tenant_id: str, registration: Registration) -> Registered:
    """Create a client. Raises the errors of `create_client` and `add_credential`."""
    columns = {**registration.columns, "is_first_party": False, "settings": dict(registration.settings)}
    client, secret = clients.create_client(tenant_id=tenant_id, **columns)
    client = _with_credentials(client, registration)
    client.registration_source = Client.RegistrationSource.DCR
    token = _new_token(client)
    client.save(update_fields=["registration_source", "registration_digest", "updated"])
    return Registered(client, "" if client.proof_method else secret, token)


@unit_of_work
def replace_registration(*, tenant_id: str, client_id: str, registration: Registration) -> Registered:
    """Replace the present registration, and the registration access token. Raises the errors of `register_client`.

    A client that needs a secret gets a new secret in two cases: it has no secret, or it needs HS256 and only the digest of its secret is
    stored. Otherwise the client keeps its secret, which is not shown again.
    """
    client = clients.locked_client(tenant_id, client_id)
    needs_secret = registration.columns["token_endpoint_auth_method"] != Client.AuthMethod.NONE and not registration.method
    is_missing = client.is_public or bool(client.proof_method) or not client.secret_digest
    is_sealed = registration.columns["algorithm"] != Client.HS256_ALGORITHM or bool(client.sealed_secret)
    secret = clients.new_secret() if needs_secret and (is_missing or not is_sealed) else ""
    changes = {**registration.columns, "settings": {**_without_credentials(client, registration), **registration.settings}}
    clients.update_client(tenant_id=tenant_id, client_id=client_id, changes=changes, secret=secret or None)
    client = _with_credentials(clients.locked_client(tenant_id, client_id), registration)
    token = _new_token(client)
    client.save(update_fields=["registration_digest", "updated"])
    return Registered(client, secret, token)


@unit_of_work
def end_registration(*, tenant_id: str, client_id: str) -> Client:
    """End the client's access to its registration; the client itself keeps working. Raises `NotFound`."""
    client = clients.locked_client(tenant_id, client_id)
    client.registration_digest = ""
    client.save(update_fields=["registration_digest", "updated"])
    return client


def managed_client(*, tenant_id: str, client_id: str, token: str) -> Client:
    """Return the client with this registration access token. Raises `NotFound`, also for an unknown client.

    A client that administrators have taken over or revoked can no longer manage itself, so its token is refused.
    """
    client = Client.objects.of(tenant_id).filter(client_id=client_id).first()
    stored = client.registration_digest if client is not None else ""
    is_right = hmac.compare_digest(digest_of(token), stored) and bool(stored)
    if client is None or not is_right or client.is_first_party or client.is_global or client.revoked_at is not None:
        raise NotFound("There is no such registration.")
    return client


def registered_count(tenant_id: str) -> int:
    """Return how many self-registered clients a tenant has."""
    return Client.objects.of(tenant_id).filter(registration_source=Client.RegistrationSource.DCR).count()


def _new_token(client: Client) -> str:
    token = new_secret()
    client.registration_digest = digest_of(token)
    return token


def _without_credentials(client: Client, registration: Registration) -> dict[str, Any]:
    """Return the settings that the caller must clear, because they name credentials that will be deleted.

    The authentication method is not cleared if it does not change, so that tokens stay valid.
    """
    stays = bool(registration.method) and registration.method == client.proof_method
    return {_SIGNED: None} if stays else {_SIGNED: None, _METHODS: None}


def _with_credentials(client: Client, registration: Registration) -> Client:
    """Register each key of the registration once, delete all other keys of the client, and return the client."""
    wanted = [*registration.proofs, *registration.request_keys]
    ids: dict[str, str] = {}
    for row in ClientCredential.objects.of(client.tenant_id).filter(client=client):
        if row.name in {new.name for new in wanted}:
            ids[row.name] = row.pk
    if not wanted and not ClientCredential.objects.of(client.tenant_id).filter(client=client).exists():
        return client
    for new in wanted:
        if new.name not in ids:
            ids[new.name] = add_credential(client, new).pk
    # Clear the settings of the earlier registration, but not `_SIGNED` if the new registration sets it: then the signed requests of the
    # client are verified with the keys at its `jwks_uri`.
    settings: dict[str, Any] = {_METHODS: None} if _SIGNED in registration.settings else {_METHODS: None, _SIGNED: None}
    if registration.proofs:
        settings[_METHODS] = {registration.method: {"credentials": [{"id": ids[new.name]} for new in registration.proofs]}}
    if registration.request_keys:
        named = [{"id": ids[new.name]} for new in registration.request_keys]
        settings[_SIGNED] = {"required": registration.signs_requests, "credentials": named}
    client = clients.update_client(tenant_id=client.tenant_id, client_id=client.client_id, changes={"settings": settings})
    ClientCredential.objects.of(client.tenant_id).filter(client=client).exclude(pk__in=ids.values()).delete()
    return client
