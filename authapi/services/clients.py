"""Clients: create, rotate the secret, revoke, delete. A secret is returned once and never again."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from authapi import client_auth
from authapi.models import Client
from identity.services.failures import Invalid, NotFound
from identity.services.saving import validated_save
from identity.transactions import lock_rows, unit_of_work

# 48 random bytes make 64 characters of A-Za-z0-9_-, more than the 256 bits that need no slow hash.
_SECRET_BYTES = 48


@unit_of_work
def create_client(
    *,
    tenant_id: str,
    name: str,
    is_global: bool = False,
    token_endpoint_auth_method: str = Client.AuthMethod.POST,
    grant_types: Iterable[str] = ("client_credentials",),
    metadata: dict[str, Any] | None = None,
    algorithm: str = "",
) -> tuple[Client, str]:
    """Create a client; return it with its secret in clear, empty for a public client. Raises `Invalid`."""
    client = Client(
        tenant_id=tenant_id,
        name=name,
        is_global=is_global,
        token_endpoint_auth_method=token_endpoint_auth_method,
        grant_types=list(grant_types),
        metadata=metadata or {},
        algorithm=algorithm,
    )
    try:
        client.clean()
    except ValidationError as error:
        raise Invalid(error.message_dict) from error
    secret = "" if client.is_public else new_secret()
    if secret:
        client.set_secret(secret)
    validated_save(client)
    return client, secret


@unit_of_work
def rotate_client_secret(*, tenant_id: str, client_id: str) -> tuple[Client, str]:
    """Give a client a new secret; the old one, and every token and stream made with it, ends. Raises `NotFound`."""
    client = locked_client(tenant_id, client_id)
    secret = new_secret()
    client.set_secret(secret)
    client.save(update_fields=["secret_digest", "sealed_secret", "updated"])
    raise_auth_version(client)
    return client, secret


@unit_of_work
def revoke_client(*, tenant_id: str, client_id: str) -> Client:
    """Shut a client out for good, its tokens and streams included, and keep its row. Raises `NotFound`."""
    client = locked_client(tenant_id, client_id)
    if client.revoked_at is None:
        client.revoked_at = timezone.now()
        client.save(update_fields=["revoked_at", "updated"])
        raise_auth_version(client)
    return client


@unit_of_work
def delete_client(*, tenant_id: str, client_id: str) -> None:
    """Delete a client with its grants; its tokens and streams end. Raises `NotFound`."""
    client = locked_client(tenant_id, client_id)
    client.delete()
    _forget_after_commit(tenant_id, client_id)


def new_secret() -> str:
    return secrets.token_urlsafe(_SECRET_BYTES)


def locked_client(tenant_id: str, client_id: str) -> Client:
    """Return the client with its row locked until the transaction ends. Raises `NotFound`."""
    key = Client.objects.of(tenant_id).filter(client_id=client_id).values_list("pk", flat=True).first()
    if key is None:
        raise NotFound("There is no such client.")
    lock_rows(Client, [key])
    return Client.objects.of(tenant_id).get(pk=key)


def raise_auth_version(client: Client) -> None:
    """End every token and stream of this client: they carry an older version from now on."""
    Client.objects.of(client.tenant_id).filter(pk=client.pk).update(auth_version=F("auth_version") + 1)
    client.refresh_from_db(fields=["auth_version"])
    _forget_after_commit(client.tenant_id, client.client_id)


def _forget_after_commit(tenant_id: str, client_id: str) -> None:
    transaction.on_commit(partial(client_auth.clients.forget, (tenant_id, client_id)), robust=True)
