"""Creates, changes, revokes and deletes clients, and rotates their secrets.

A secret is returned once, and is never stored in plain text.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import F, Q
from django.utils import timezone

from authapi import client_auth
from authapi.clients.logout_addresses import front_channel_problem
from authapi.compliance.enforcing import client_shape
from authapi.compliance.levels import LEVELS, NONE, broken, level_of
from authapi.compliance.rules import Stage
from authapi.models import ApiResource, Client, ClientCredential
from authapi.tokens.keys import forget_published_after_commit
from foundation.database.transactions import after_commit, lock_rows, unit_of_work
from foundation.json_values import merged
from identity.models import Connection, Organization, Tenant
from identity.services.connections import remove_enabled_clients
from identity.services.failures import AlreadyExists, Invalid, NotFound
from identity.services.saving import validated_save

# 48 random bytes are 64 characters of A-Za-z0-9_-. A secret of this length has more than 256 bits, so it needs no slow hash.
_SECRET_BYTES = 48
_COLUMNS = ("app_type", "is_first_party", "redirect_uris", "post_logout_redirect_uris", "allowed_origins", "settings")
_STANDING = ("token_endpoint_auth_method", "grant_types")
_MERGED = ("metadata", "settings")
# The methods by which a client authenticates without a secret, and the type of credential for each.
CREDENTIAL_TYPES = {
    "private_key_jwt": ClientCredential.Type.PUBLIC_KEY,
    "tls_client_auth": ClientCredential.Type.CERT_SUBJECT_DN,
    "self_signed_tls_client_auth": ClientCredential.Type.X509_CERT,
}


class BreaksLevel(Invalid):
    """The client would break rules of its compliance level."""


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
    **columns: Any,
) -> tuple[Client, str]:
    """Create a client; return it with its secret in plain text, which is empty for a public client. Raises `Invalid`, `AlreadyExists`."""
    _refuse_unknown(columns)
    client = Client(
        tenant_id=tenant_id,
        name=name,
        is_global=is_global,
        token_endpoint_auth_method=token_endpoint_auth_method,
        grant_types=list(grant_types),
        metadata=merged({}, metadata or {}),
        algorithm=algorithm,
        **columns,
    )
    client.settings = merged({}, client.settings)
    _check(client)
    _check_default_organization(client)
    _check_own_api(client)
    secret = "" if client.is_public else new_secret()
    if secret:
        client.set_secret(secret)
    validated_save(client)
    forget_published_after_commit(tenant_id)
    return client, secret


@unit_of_work
def update_client(*, tenant_id: str, client_id: str, changes: dict[str, Any], secret: str | None = None) -> Client:
    """Replace the given columns, merge `metadata` and `settings`, and set the secret if one is given.

    Raises `NotFound`, `Invalid`, `AlreadyExists`. The client's JWT access tokens end if its secret, authentication method or grant types
    change, if one of the credentials with which it authenticates is removed, or if it gets a compliance level.
    """
    client = locked_client(tenant_id, client_id)
    _refuse_unknown({name: value for name, value in changes.items() if name not in ("name", *_STANDING, "metadata", "algorithm")})
    is_standing_changed = secret is not None or any(getattr(client, name) != changes[name] for name in _STANDING if name in changes)
    method, proofs, level = client.auth_method, client.proof_ids, level_of(client.settings)
    change_columns(client, changes)
    _check(client)
    if "default_organization" in changes.get("settings", {}):
        _check_default_organization(client)
    if "resource_server_identifier" in changes.get("settings", {}):
        _check_own_api(client)
    if secret is not None:
        client.set_secret(secret)
    if changes or secret is not None:
        validated_save(client)
        forget_after_commit(tenant_id, client_id)
    # An added credential ends no tokens, so that keys can rotate. A new compliance level ends all JWT access tokens, because older tokens
    # may be unbound.
    is_standing_changed |= level_of(client.settings) not in (level, NONE)
    if is_standing_changed or method != client.auth_method or set(proofs) - set(client.proof_ids):
        raise_auth_version(client)
    return client


def change_columns(client: Client, changes: dict[str, Any]) -> None:
    """Replace the given columns of a row without saving it; `metadata` and `settings` are merged."""
    for name, value in changes.items():
        setattr(client, name, merged(getattr(client, name), value) if name in _MERGED else value)


def broken_rules(client: Client) -> dict[str, list[str]]:
    """Return the sentences of the compliance rules that a client breaks, grouped by the member that must change."""
    level = level_of(client.settings)
    if level == NONE:
        return {}
    if level not in LEVELS:
        return {"compliance_level": [f"Expected one of {', '.join(LEVELS)}."]}
    rows = {row.pk: row for row in ClientCredential.objects.of(client.tenant_id).filter(client_id=client.pk)} if client.pk else {}
    proofs = [rows[key] for key in client.proof_ids if key in rows]
    shape = client_shape(client, proofs=proofs, request_keys=[rows[key] for key in client.request_key_ids if key in rows])
    found: dict[str, list[str]] = {}
    for rule in broken(level, Stage.CLIENT, shape):
        found.setdefault(rule.member, []).append(rule.sentence)
    return found


@unit_of_work
def rotate_client_secret(*, tenant_id: str, client_id: str) -> tuple[Client, str]:
    """Set a new secret and return it with the client. Ends the client's JWT access tokens and streams. Raises `NotFound`."""
    client = locked_client(tenant_id, client_id)
    secret = new_secret()
    client.set_secret(secret)
    client.save(update_fields=["secret_digest", "sealed_secret", "updated"])
    raise_auth_version(client)
    return client, secret


@unit_of_work
def revoke_client(*, tenant_id: str, client_id: str) -> Client:
    """Revoke a client permanently, including its tokens and streams, and keep its row. Raises `NotFound`."""
    client = locked_client(tenant_id, client_id)
    if client.revoked_at is None:
        client.revoked_at = timezone.now()
        client.save(update_fields=["revoked_at", "updated"])
        raise_auth_version(client)
    return client


@unit_of_work
def delete_client(*, tenant_id: str, client_id: str) -> None:
    """Delete a client with its grants and its entries in connections; its tokens and streams end. Raises `NotFound`."""
    for connection in (
        Connection.objects.of(tenant_id).filter(enabled_clients__contains=[client_id], deletion_started_at=None).order_by("pk")
    ):
        remove_enabled_clients(tenant_id=tenant_id, connection_id=connection.pk, client_ids=[client_id])
    client = locked_client(tenant_id, client_id)
    client.delete()
    forget_after_commit(tenant_id, client_id)


def _check(client: Client) -> None:
    try:
        client.clean()
    except ValidationError as error:
        raise Invalid(error.message_dict) from error
    use = {name for name in ("organization_usage", "organization_require_behavior") if client.settings.get(name)}
    if use and not client.is_first_party:
        raise Invalid({"is_first_party": ["A client with organization settings must be first-party."]})
    _check_proofs(client)
    if client.is_public and client.settings.get("require_pushed_authorization_requests"):
        raise Invalid({"require_pushed_authorization_requests": ["A client without authentication cannot push requests."]})
    _check_signed_requests(client)
    _check_front_channel(client)
    broken_by_level = broken_rules(client)
    if broken_by_level:
        raise BreaksLevel(broken_by_level)
    _check_aliases(client)


def _check_proofs(client: Client) -> None:
    """Refuse credentials that belong to another client, or that have another type than the client's method needs."""
    if not client.proof_ids:
        return
    own = ClientCredential.objects.of(client.tenant_id).filter(client=client, type=CREDENTIAL_TYPES[client.auth_method])
    missing = set(client.proof_ids) - set(own.filter(pk__in=client.proof_ids).values_list("pk", flat=True))
    if missing:
        raise Invalid({"client_authentication_methods": [f"The client has no such credential for {client.auth_method}: {min(missing)}"]})
    if client.algorithm == Client.HS256_ALGORITHM:
        raise Invalid({"jwt_configuration": ["A client without a secret needs tokens signed with RS256, PS256 or RS512."]})


def _check_signed_requests(client: Client) -> None:
    """Refuse keys of other clients as keys for signed requests. Refuse to require signed requests from a client without keys."""
    signed = client.settings.get("signed_request_object") or {}
    if signed.get("required") and not client.request_key_ids and not client.settings.get("jwks_uri"):
        raise Invalid({"signed_request_object": ["Name a key or a jwks_uri first. Without a key, no user can log in."]})
    named = client.used_credential_ids - set(client.proof_ids)
    if not named:
        return
    keys = ClientCredential.objects.of(client.tenant_id).filter(type=ClientCredential.Type.PUBLIC_KEY, pk__in=named)
    # A client that is being created has no keys yet.
    missing = named - set(keys.filter(client_id=client.pk).values_list("pk", flat=True) if client.pk else ())
    if missing:
        raise Invalid({"signed_request_object": [f"The client has no such public key: {min(missing)}"]})


def _check_front_channel(client: Client) -> None:
    address = client.settings.get("frontchannel_logout_uri")
    problem = front_channel_problem(address, client.redirect_uris.split()) if address else None
    if problem:
        raise Invalid({"frontchannel_logout_uri": [problem]})


def _check_own_api(client: Client) -> None:
    """Check the setting that makes a client an API: the API must exist, and the client must authenticate and have the type
    `resource_server`.

    Such a client may exchange only access tokens whose audience is its API.
    """
    identifier = client.settings.get("resource_server_identifier")
    if not identifier:
        return
    if client.app_type != "resource_server" or client.is_public:
        raise Invalid({"resource_server_identifier": ["A client that is an API must authenticate and have the type resource_server."]})
    if not ApiResource.objects.of(client.tenant_id).filter(identifier=identifier, is_system=False).exists():
        raise Invalid({"resource_server_identifier": ["The resource server does not exist."]})


def _check_default_organization(client: Client) -> None:
    """Refuse a default organization that the tenant does not have.

    The check runs only when the default organization is set. This organization may be deleted later, and other changes of the client must
    then still succeed.
    """
    named = (client.settings.get("default_organization") or {}).get("organization_id")
    if named and not Organization.objects.of(client.tenant_id).filter(pk=named).exists():
        raise Invalid({"default_organization": ["The organization does not exist"]})


def _check_aliases(client: Client) -> None:
    """Refuse an alias that another client already has. The tenant is locked, so that two concurrent requests cannot both pass."""
    aliases = client.settings.get("client_aliases") or []
    if not aliases:
        return
    lock_rows(Tenant, [client.tenant_id])
    taken = Q()
    for alias in aliases:
        taken |= Q(settings__client_aliases__contains=[alias])
    if Client.objects.of(client.tenant_id).filter(taken).exclude(pk=client.pk).exists():
        raise AlreadyExists("A client with this alias already exists.")


def _refuse_unknown(columns: dict[str, Any]) -> None:
    unknown = {name: ["Unknown field."] for name in columns if name not in _COLUMNS}
    if unknown:
        raise Invalid(unknown)


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
    """End every JWT access token and every stream of this client: tokens and streams with an older version than the client are refused.

    Opaque tokens and refresh tokens contain no version, so they stay valid.
    """
    Client.objects.of(client.tenant_id).filter(pk=client.pk).update(auth_version=F("auth_version") + 1)
    client.refresh_from_db(fields=["auth_version"])
    forget_after_commit(client.tenant_id, client.client_id)


def forget_after_commit(tenant_id: str, client_id: str) -> None:
    """Make this process reload the client after the commit."""
    after_commit(client_auth.clients.forget, (tenant_id, client_id))
    forget_published_after_commit(tenant_id)
