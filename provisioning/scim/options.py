"""Options of a SCIM action. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foundation.expressions.language import ExpressionRefused, compile_expression
from provisioning.scim.profiles import GENERIC, PROFILES

UPDATE_MODES = ("put", "patch", "patch_per_attribute")
SLOWEST_RATE = 0.5
FASTEST_RATE = 1000
USER_NAME_PROOFS = ("never", "verified", "always")
_SWITCHES = ("upsert", "adopt_on_conflict", "enterprise", "trust_connection_addresses")


class OptionsRefused(ValueError):
    """The options cannot be used."""


@dataclass(frozen=True)
class ScimOptions:
    """The mode of updates, and the handling of users that are missing or already exist on the server.

    - `upsert` creates a missing user on update.
    - `adopt_on_conflict` takes over an existing resource if its user name is proven to be the user's.
    - `user_name_proof`: `never` accepts no proof; `verified` accepts an email address that this service has verified; `always` accepts
      an equal name.
    - `trust_connection_addresses` changes `verified`: it then also accepts an address that an external provider reports as verified.
    - `enterprise` enables the rows of the Enterprise User extension.
    - `requests_per_second` limits the requests of all processes together; None means no limit.
    - `scope` is an expression that is true for users of the action; an empty expression includes every user.

    Options that are not set get the values of the `server_profile`.
    """

    update_mode: str = "put"
    upsert: bool = False
    adopt_on_conflict: bool = False
    enterprise: bool = False
    requests_per_second: float | None = None
    server_profile: str = GENERIC
    scope: str = ""
    user_name_proof: str = "verified"
    trust_connection_addresses: bool = False


def parse_options(options: Mapping[str, Any]) -> ScimOptions:
    """Parse the options; raise `OptionsRefused` with a sentence for an unknown name or value."""
    unknown = sorted(set(options) - {"server_profile", "update_mode", "requests_per_second", "scope", "user_name_proof", *_SWITCHES})
    if unknown:
        raise OptionsRefused(f"Unknown option: {', '.join(unknown)}.")
    if not isinstance(name := options.get("server_profile", GENERIC), str) or name not in PROFILES:
        raise OptionsRefused(f"The option server_profile must be one of {', '.join(filter(None, PROFILES))}.")
    if options.get("update_mode", "put") not in UPDATE_MODES:
        raise OptionsRefused(f"The option update_mode must be one of {', '.join(UPDATE_MODES)}.")
    if options.get("user_name_proof", "verified") not in USER_NAME_PROOFS:
        raise OptionsRefused(f"The option user_name_proof must be one of {', '.join(USER_NAME_PROOFS)}.")
    for name in _SWITCHES:
        if not isinstance(options.get(name, False), bool):
            raise OptionsRefused(f"The option {name} must be true or false.")
    _check_rate(options.get("requests_per_second"))
    _check_scope(options.get("scope", ""))
    profile = PROFILES[options.get("server_profile", GENERIC)]
    return ScimOptions(**{"update_mode": profile.update_mode, "requests_per_second": profile.requests_per_second, **options})


def rate_of(options: Mapping[str, Any]) -> float | None:
    """Return the limit of requests per second. None if the limit is not set or invalid; the run refuses invalid options."""
    name = options.get("server_profile", GENERIC)
    known = PROFILES.get(name) if isinstance(name, str) else None
    rate = options.get("requests_per_second", known.requests_per_second if known else None)
    return float(rate) if rate is not None and _is_rate(rate) else None


def _check_rate(rate: Any) -> None:
    if rate is not None and not _is_rate(rate):
        raise OptionsRefused(
            f"The option requests_per_second must be a number from {SLOWEST_RATE} to {FASTEST_RATE}, or null for no limit."
        )


def _check_scope(scope: Any) -> None:
    if not isinstance(scope, str):
        raise OptionsRefused(
            "The option scope must be a text: an expression that is true or false for a user, or an empty text for all users."
        )
    try:
        if scope:
            compile_expression(scope)
    except ExpressionRefused as error:
        raise OptionsRefused(f"scope: {error}") from error


def _is_rate(rate: Any) -> bool:
    return isinstance(rate, int | float) and not isinstance(rate, bool) and SLOWEST_RATE <= rate <= FASTEST_RATE
