"""Converts clients between API documents and database columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from authapi.api.client_promises import refuse_promises
from authapi.models import Client
from authapi.tokens.refresh_policy import shown_policy
from foundation.api.refusals import invalid_body
from foundation.timestamps import wire_time

# The OAuth toolkit stores these lists as text separated by spaces.
_SPACED = {"callbacks": "redirect_uris", "allowed_logout_urls": "post_logout_redirect_uris", "allowed_origins": "allowed_origins"}
_COLUMNS = ("name", "app_type", "is_first_party", "grant_types", "token_endpoint_auth_method")
_MISSING = object()
_PUBLIC_TYPES = ("native", "spa")
# Defaults that documents show for settings without a stored value.
_DEFAULTS: dict[str, Any] = {
    "is_token_endpoint_ip_header_trusted": False,
    "oidc_conformant": True,
    "sso_disabled": False,
    "cross_origin_authentication": False,
    "custom_login_page_on": True,
}
_SUMMARY = ("client_id", "tenant", "name", "app_type", "is_first_party", "global", "logo_uri", "description")


def client_resource(client: Client, *, secret: str | None = None) -> dict[str, Any]:
    """Return the client as the management interface shows it. Pass `secret` only in the response to the request that created the secret."""
    lists = {name: getattr(client, column).split() for name, column in _SPACED.items()}
    token = {"alg": client.algorithm or "RS256", "lifetime_in_seconds": 36_000, "secret_encoded": False}
    optional = {**lists, "app_type": client.app_type, "client_metadata": client.metadata, "client_secret": secret}
    return {
        "tenant": client.tenant_id,
        "client_id": client.client_id,
        "name": client.name,
        "global": client.is_global,
        "is_first_party": client.is_first_party,
        "grant_types": client.grant_types,
        # Leave `token_endpoint_auth_method` out if the client authenticates with keys or certificates: `client_authentication_methods`
        # names these.
        **({} if client.proof_method else {"token_endpoint_auth_method": client.token_endpoint_auth_method}),
        **_DEFAULTS,
        **client.settings,
        "refresh_token": shown_policy(client.settings.get("refresh_token"), is_public=client.is_public),
        "jwt_configuration": {**token, **client.settings.get("jwt_configuration", {})},
        **{name: value for name, value in optional.items() if value},
        "created_at": wire_time(client.created),
        "updated_at": wire_time(client.updated),
    }


def client_summary(client: Client) -> dict[str, Any]:
    """Return the members that a token with `read:client_summary` may read."""
    document = client_resource(client)
    return {name: document[name] for name in _SUMMARY if name in document}


def columns_of(body: dict[str, Any], *, has_methods: bool = False, present: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the columns that a checked body sets. `metadata` and `settings` contain only the changes.

    Raises `operation_not_supported` for values that need an unsupported feature. A value that the client already has (`present`) is
    accepted, because deployment tools send back values that they have read. `has_methods` is true for a client that authenticates with keys
    or certificates. A client that authenticates without keys or certificates must not set `token_endpoint_auth_method` to null.
    """
    body = _without_old_names(body)
    refuse_promises(body, present or {})
    columns = {name: body[name] for name in _COLUMNS if name in body}
    if columns.get("token_endpoint_auth_method", "") is None:
        if not has_methods:
            raise invalid_body("Null is for clients with client_authentication_methods", "token_endpoint_auth_method")
        del columns["token_endpoint_auth_method"]
    columns |= {column: " ".join(body[name]) for name, column in _SPACED.items() if name in body}
    if "client_metadata" in body:
        columns["metadata"] = body["client_metadata"]
    placed = (*_COLUMNS, *_SPACED, "client_metadata", "client_secret")
    settings = {name: _kept(name, value) for name, value in body.items() if name not in placed}
    if "jwt_configuration" in settings:
        token = dict(settings["jwt_configuration"])
        algorithm = token.pop("alg", None)
        if algorithm is not None:
            columns["algorithm"] = algorithm
        settings["jwt_configuration"] = token
    if settings:
        columns["settings"] = settings
    return columns


def _without_old_names(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with the member `oidc_backchannel_logout` renamed to `oidc_logout`. If both members are sent, `oidc_logout`
    applies."""
    newer = dict(body)
    older = newer.pop("oidc_backchannel_logout", _MISSING)
    return newer if older is _MISSING else {"oidc_logout": older, **newer}


def _kept(name: str, value: Any) -> Any:
    """Return a setting in its stored form: without the add-ons that are off."""
    return {addon: settings for addon, settings in value.items() if settings is not None} if name == "addons" and value else value


def defaults_of(app_type: str) -> dict[str, Any]:
    """Return the defaults for a new client of this type."""
    if app_type in _PUBLIC_TYPES:
        return {"grant_types": ["authorization_code", "refresh_token"], "token_endpoint_auth_method": Client.AuthMethod.NONE}
    if app_type == "non_interactive":
        return {"grant_types": ["client_credentials"]}
    return {"grant_types": ["authorization_code", "refresh_token", "client_credentials"]}
