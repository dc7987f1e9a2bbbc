"""Decides which values of a client need a feature that this service does not have, and refuses them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from authapi.models import Initiator
from authapi.protocols.legacy.opting_in import LEGACY_GRANTS
from authapi.protocols.oauth.engine import SERVED_GRANTS
from foundation.api.refusals import not_supported

Members = Mapping[str, Any]
# Add-ons that this service implements, with their own settings and protocols.
SERVED_ADDONS = frozenset({"samlp", "wsfed"})
# For each of these members, the only values that the service accepts. `custom_login_page_on` is not listed: both values have no effect
# without a custom page, and custom pages are refused. `sso` and `form_template` are not listed either: they are settings of refused
# features. `encryption_key` is only stored: the add-on `samlp` has a certificate of its own.
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "custom_login_page": (None, ""),
    "custom_login_page_preview": (None, ""),
    # Users enter the name of their organization. No page finds an organization by email address.
    "organization_discovery_methods": (None, ["organization_name"]),
    # No page asks users to confirm a callback, so only `true` (skip the confirmation) describes the actual behavior.
    "skip_non_verifiable_callback_uri_confirmation_prompt": (None, True),
    "third_party_security_mode": (None, "permissive"),
    "redirection_policy": (None, "allow_always"),
    **dict.fromkeys(("token_vault_privileged_access", "express_configuration", "my_organization_configuration"), (None, {})),
    **dict.fromkeys(("b2b_integration_configuration", "oidc_support"), (None, {})),
}
# Objects of switches (boolean members). A switch that is true needs a feature that this service does not have.
_SWITCHED_ON = ("native_social_login", "fedcm_login", "anonymous_sessions", "identity_assertion_authorization_grant")


def refuse_promises(body: Members, present: Members) -> None:
    """Raise `operation_not_supported` for values that need an unsupported feature.

    A value that the resource of the client already has (`present`) is accepted: deployment tools send back values that they have read.
    """
    for name in _promising(body):
        if body[name] != present.get(name):
            raise not_supported(f"This service does not support this value yet: {name}.")
    unserved = set(body.get("grant_types") or ()) - {"implicit", *SERVED_GRANTS, *LEGACY_GRANTS, *present.get("grant_types", ())}
    if unserved:
        raise not_supported(f"This service does not support this grant type: {min(unserved)}.")
    initiators = ((body.get("oidc_logout") or {}).get("backchannel_logout_initiators") or {}).get("selected_initiators") or ()
    if Initiator.PROFILE_CHANGED in initiators:
        raise not_supported("A changed profile does not end sessions: remove profile-changed.")
    token = body.get("jwt_configuration", {})
    if token.get("secret_encoded"):
        raise not_supported("Encoded secrets are not supported: set secret_encoded to false.")


def _promising(body: Members) -> Iterator[str]:
    yield from (name for name, harmless in _HARMLESS.items() if name in body and body[name] not in harmless)
    yield from (name for name in _SWITCHED_ON if _is_on(body.get(name)))
    yield from (name for name, promises in _PROMISES.items() if body.get(name) and promises(body[name]))


def _is_on(value: Any) -> bool:
    """Tell whether any switch in a nested object is on."""
    return value is True or (isinstance(value, Mapping) and any(_is_on(member) for member in value.values()))


def _transfers(value: Members) -> bool:
    named = ("can_create_session_transfer_token", "allowed_authentication_methods", "allow_refresh_token", "delegation")
    members = {name: value.get(name) for name in named}
    delegation = members.pop("delegation") or {}
    # The other members of `session_transfer` only restrict a transfer, so they have no effect without one.
    return any(members.values()) or bool(delegation.get("allow_delegated_access"))


def _limits_tokens(value: Members) -> bool:
    quota = value["client_credentials"]
    # If the object contains a limit without `enforce`, the limit is enforced.
    return bool(quota.get("enforce", "per_day" in quota or "per_hour" in quota))


_PROMISES: dict[str, Callable[[Members], bool]] = {
    # An add-on that the body contains is on, even without settings.
    "addons": lambda value: any(settings is not None for name, settings in value.items() if name not in SERVED_ADDONS),
    "session_transfer": _transfers,
    "token_quota": _limits_tokens,
}
