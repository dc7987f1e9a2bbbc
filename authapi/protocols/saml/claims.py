"""Builds the content of an assertion from a user's profile: attributes by their claim names, and the NameID. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from authapi.protocols.saml.names import (
    EMAIL_ADDRESS,
    EMAIL_NAME,
    NAME,
    NAME_IDENTIFIER,
    OTHER_SPELLINGS,
    PERSISTENT_NAME,
    TRANSIENT_NAME,
    UNSPECIFIED_NAME,
    UPN,
)
from authapi.protocols.saml.settings import SamlSettings

Value = str | bool | int | float
# Internal members and account records. They are not passed through: an assertion contains such a member only if a mapping names it. An
# assertion also contains `identities` if the settings map identities.
_KEPT_BACK = frozenset(
    {"identities", "user_metadata", "app_metadata", "multifactor", "blocked", "last_ip", "last_login", "logins_count", "groups", "roles"}
)
_DEFAULT_PREFIX = "urn:svc:claims:"
_PROFILE_OF_PROBE = {NAME_IDENTIFIER: "user_id", EMAIL_ADDRESS: "email", NAME: "name", UPN: "upn"}


class NameIdUnavailable(ValueError):
    """The user has no NameID in the format that the application requests."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


@dataclass(frozen=True)
class Attribute:
    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class NameId:
    value: str
    format: str
    qualifier: str = ""
    sp_qualifier: str = ""


def attributes_of(profile: Mapping[str, Any], settings: SamlSettings) -> tuple[Attribute, ...]:
    """Return the attributes of a user in a stable order; empty attributes are omitted.

    The order is: mapped claims, the UPN, claims that are passed through without a mapping, identities.

    A mapping reads a member of the profile, or with dots a nested member, such as `app_metadata.department`.
    """
    known = {**profile, **_upn(profile, settings)}
    found: dict[str, tuple[Value, ...]] = {}
    for source, names in settings.mappings.items():
        values = _values(_member(known, source))
        for name in names:
            found.setdefault(name, values)
    if "upn" in known and "upn" not in settings.mappings:
        found.setdefault(UPN, _values(known["upn"]))
    if settings.passes_unmapped:
        for name, value in _unmapped(profile, settings):
            found.setdefault(_passed_name(name, settings), _values(value))
    if settings.maps_identities:
        for name, value in _identities(profile):
            found.setdefault(_passed_name(name, settings), _values(value))
    return tuple(Attribute(name, values) for name, values in found.items() if values)


def name_id_of(
    profile: Mapping[str, Any],
    attributes: Iterable[Attribute],
    settings: SamlSettings,
    *,
    asked_format: str,
    pairwise: str,
    random: str,
    issuer: str,
    sp_qualifier: str = "",
) -> NameId:
    """Return the NameID, in the format of the request, otherwise in the format of the settings.

    The value comes from the first probe for which the user has a value, or is the user id if there is no such probe. This applies if the
    request names no format, the format `unspecified`, or the same format as the settings.

    For another requested format, the value is the email address (`emailAddress`), `pairwise` (`persistent`) or `random`
    (`transient`). Raises `NameIdUnavailable` for every further format, and for `emailAddress` if the user has no email address. (SAML core,
    3.4.1.1: answer with the requested format or with an error.)
    """
    wanted = OTHER_SPELLINGS.get(asked_format, asked_format)
    if wanted in ("", UNSPECIFIED_NAME) or wanted == settings.name_id_format:
        return _configured(profile, attributes, settings)
    if wanted == EMAIL_NAME and profile.get("email"):
        return NameId(str(profile["email"]), EMAIL_NAME)
    if wanted == PERSISTENT_NAME:
        return NameId(pairwise, PERSISTENT_NAME, issuer, sp_qualifier)
    if wanted == TRANSIENT_NAME:
        return NameId(random, TRANSIENT_NAME)
    raise NameIdUnavailable


def pairwise_id(*, tenant_id: str, client_id: str, user_id: str) -> str:
    """Return the id of a user for one application. The id never changes, and it contains no name."""
    return hashlib.sha256("\x00".join((tenant_id, client_id, user_id)).encode()).hexdigest()


def _configured(profile: Mapping[str, Any], attributes: Iterable[Attribute], settings: SamlSettings) -> NameId:
    by_name = {attribute.name: attribute.values for attribute in attributes}
    for probe in settings.name_id_probes:
        # If no attribute has the name of the probe, use the member of the profile: the mapping may send this member under another name.
        values = by_name.get(probe) or _values(_member(profile, _PROFILE_OF_PROBE.get(probe, probe)))
        if values:
            return NameId(text_of(values[0]), settings.name_id_format)
    return NameId(str(profile["user_id"]), settings.name_id_format)


def text_of(value: Value) -> str:
    """Return a value as XML Schema writes it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _upn(profile: Mapping[str, Any], settings: SamlSettings) -> dict[str, Any]:
    if not settings.creates_upn or profile.get("upn"):
        return {}
    return {"upn": profile.get("email") or profile["user_id"]}


def _unmapped(profile: Mapping[str, Any], settings: SamlSettings) -> Iterator[tuple[str, Any]]:
    for name, value in profile.items():
        if name not in _KEPT_BACK and name not in settings.mappings and not isinstance(value, Mapping):
            yield name, value


def _passed_name(name: str, settings: SamlSettings) -> str:
    return name if settings.maps_unknown_as_is else f"{settings.claims_prefix or _DEFAULT_PREFIX}{name}"


def _identities(profile: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of the attributes of each identity: provider, connection and whether it is social.

    The name contains `default` for the first identity, and the provider for other identities.
    """
    for place, identity in enumerate(profile.get("identities") or ()):
        owner = "default" if place == 0 else identity.get("provider")
        for name in ("provider", "connection", "isSocial"):
            if identity.get(name) is not None:
                yield f"identities/{owner}/{name}", identity[name]


def _member(profile: Mapping[str, Any], path: str) -> Any:
    if path in profile:
        return profile[path]
    found: Any = profile
    for name in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found


def _values(value: Any) -> tuple[Value, ...]:
    each = value if isinstance(value, list | tuple) else (value,)
    return tuple(one for one in each if isinstance(one, str | bool | int | float) and one != "")
