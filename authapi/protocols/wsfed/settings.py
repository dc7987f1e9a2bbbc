"""The settings of the add-on `wsfed` of a client: those of `samlp` that a token of WS-Federation has too, and the kind of token. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from authapi.protocols.saml.settings import SamlSettings, settings_of

ADDON = "wsfed"
SAML11, JWT, PLAIN_JWT = "saml11", "jwt", "plain_jwt"
TOKEN_TYPES = (SAML11, JWT, PLAIN_JWT)
# Applications end their own session with the token (contract, 2.7).
DEFAULT_LIFETIME = 8 * 3600


@dataclass(frozen=True)
class WsFedSettings:
    """What an application wants of its tokens. `claims` holds mappings, names and algorithms, which both protocols share.

    `token_type` is a SAML 1.1 assertion, a JWT inside a binary token, or, for middleware that expects nothing around it, a bare JWT.
    """

    claims: SamlSettings
    token_type: str
    lifetime: timedelta


def is_on(client_settings: Mapping[str, Any]) -> bool:
    """Tell whether a client speaks WS-Federation: the add-on is named, also without any setting."""
    return (client_settings.get("addons") or {}).get(ADDON) is not None


def wsfed_settings(client_settings: Mapping[str, Any]) -> WsFedSettings:
    """Return the settings of the add-on of a client, with defaults where nothing is set."""
    addon: Mapping[str, Any] = (client_settings.get("addons") or {}).get(ADDON) or {}
    seconds = addon.get("lifetimeInSeconds") or DEFAULT_LIFETIME
    token_type = addon.get("tokenType")
    return WsFedSettings(settings_of(addon), token_type if token_type in TOKEN_TYPES else SAML11, timedelta(seconds=seconds))
