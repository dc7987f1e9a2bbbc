"""The settings of a client's add-on `wsfed`: the type of token, and settings of `samlp` that also apply to these tokens. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from authapi.protocols.saml.settings import SamlSettings, settings_of

ADDON = "wsfed"
SAML11, JWT, PLAIN_JWT = "saml11", "jwt", "plain_jwt"
TOKEN_TYPES = (SAML11, JWT, PLAIN_JWT)
# Lifetime of a token. Applications end their own session when the token expires (contract, 2.7).
DEFAULT_LIFETIME = 8 * 3600


@dataclass(frozen=True)
class WsFedSettings:
    """The settings of an application. `claims` contains the mappings, names and algorithms that SAML and WS-Federation share.

    `token_type` is a SAML 1.1 assertion, a JWT inside a binary token, or a bare JWT for middleware that expects no XML.
    """

    claims: SamlSettings
    token_type: str
    lifetime: timedelta


def is_on(client_settings: Mapping[str, Any]) -> bool:
    """Tell whether a client uses WS-Federation: it has the add-on, even without settings."""
    return (client_settings.get("addons") or {}).get(ADDON) is not None


def wsfed_settings(client_settings: Mapping[str, Any]) -> WsFedSettings:
    """Return the settings of a client's add-on, with defaults for unset members."""
    addon: Mapping[str, Any] = (client_settings.get("addons") or {}).get(ADDON) or {}
    seconds = addon.get("lifetimeInSeconds") or DEFAULT_LIFETIME
    token_type = addon.get("tokenType")
    return WsFedSettings(settings_of(addon), token_type if token_type in TOKEN_TYPES else SAML11, timedelta(seconds=seconds))
