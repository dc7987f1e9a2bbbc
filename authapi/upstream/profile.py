"""Turns claims of a provider into profile fields of a user. Pure. An invalid value is dropped, so it never stops a login."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

_LONGEST = {"name": 300, "nickname": 300, "given_name": 150, "family_name": 150, "picture": 2048, "email": 254}
_TEMPLATE = re.compile(r"\$\{context\.(tokenset|userinfo)\.([A-Za-z0-9_:/.-]{1,200})\}")
# The claims that become profile fields if the connection has no attribute map.
STANDARD_CLAIMS = frozenset(
    {
        *("name", "nickname", "preferred_username", "given_name", "family_name", "picture"),
        *("email", "email_verified", "phone_number", "phone_number_verified"),
    }
)
_PHONE = re.compile(r"\+[0-9]{1,15}")
# If the id token lacks one of these claims, the userinfo endpoint is read.
_WANTED = ("email", "name")


def needs_userinfo(claims: Mapping[str, Any]) -> bool:
    """Tell whether the id token has too few claims about the user."""
    return not all(claims.get(name) for name in _WANTED)


def named_claims(attribute_map: Any) -> frozenset[str]:
    """Return the names of the claims in the templates of an attribute map."""
    return frozenset(name for template in _attributes(attribute_map).values() for _, name in _TEMPLATE.findall(template))


def profile_of(claims: Mapping[str, Any], userinfo: Mapping[str, Any], attribute_map: Any) -> dict[str, Any]:
    """Return the profile fields that the provider's claims set. Fields without a claim are missing."""
    profile = _standard(claims, userinfo)
    for field, template in _attributes(attribute_map).items():
        value = _filled(template, claims, userinfo)
        if value is None:
            continue
        if field == "email":
            profile.pop("email_verified", None)
            profile |= _proven_address(value, claims, userinfo)
        else:
            profile[field] = value
    fitting = {field: value for field, value in profile.items() if _fits(field, value)}
    if "email" not in fitting:
        # The email address was dropped, so drop its verification: the verification must not apply to the address that the user already has.
        fitting.pop("email_verified", None)
    return fitting


def _standard(claims: Mapping[str, Any], userinfo: Mapping[str, Any]) -> dict[str, Any]:
    known = {**userinfo, **claims}
    profile: dict[str, Any] = {field: known[field] for field in ("name", "given_name", "family_name", "picture") if field in known}
    nickname = known.get("nickname") or known.get("preferred_username")
    if nickname:
        profile["nickname"] = nickname
    return profile | _proven(claims, userinfo, "email", "email_verified") | _phone(claims, userinfo)


def _proven(claims: Mapping[str, Any], userinfo: Mapping[str, Any], field: str, proof: str) -> dict[str, Any]:
    """Return the value of a field, and whether the source of this value has verified the value."""
    source = claims if field in claims else userinfo
    if field not in source:
        return {}
    # The value is verified only if the claim about it is `true` or the text "true".
    return {field: source[field], **({proof: source[proof] is True or source[proof] == "true"} if proof in source else {})}


def _proven_address(address: str, claims: Mapping[str, Any], userinfo: Mapping[str, Any]) -> dict[str, Any]:
    """Return an email address that an attribute map has produced, and whether it is verified.

    The address is verified only if the claims contain the same address, and also state that this address is verified.
    """
    source = next((place for place in (claims, userinfo) if place.get("email") == address), {})
    return {"email": address} | _proven(source, {}, "email", "email_verified")


def _phone(claims: Mapping[str, Any], userinfo: Mapping[str, Any]) -> dict[str, Any]:
    found = _proven(claims, userinfo, "phone_number", "phone_number_verified")
    number = found.get("phone_number")
    if not isinstance(number, str) or not _PHONE.fullmatch(number):
        return {}
    return {"phone_number": number, "phone_verified": found.get("phone_number_verified", False)}


def _attributes(attribute_map: Any) -> dict[str, str]:
    if not isinstance(attribute_map, dict) or attribute_map.get("mapping_mode") != "use_map":
        return {}
    attributes = attribute_map.get("attributes")
    named = attributes.items() if isinstance(attributes, dict) else ()
    return {field: template for field, template in named if field in _LONGEST and isinstance(template, str)}


def _filled(template: str, claims: Mapping[str, Any], userinfo: Mapping[str, Any]) -> str | None:
    """Replace `${context.tokenset.x}` and `${context.userinfo.x}`; None if one of these claims is not a text."""
    sources = {"tokenset": claims, "userinfo": userinfo}
    values = {match.group(): sources[match.group(1)].get(match.group(2)) for match in _TEMPLATE.finditer(template)}
    if not all(isinstance(value, str) for value in values.values()):
        return None
    return _TEMPLATE.sub(lambda match: str(values[match.group()]), template)


def _fits(field: str, value: Any) -> bool:
    if isinstance(value, bool):
        return field.endswith("_verified")
    if not isinstance(value, str) or not value.strip() or "\x00" in value or not value.isprintable():
        return False
    if len(value) > _LONGEST.get(field, 300):
        return False
    if field == "email":
        return _is_email(value)
    return field != "picture" or _is_web_address(value)


def _is_email(value: str) -> bool:
    try:
        validate_email(value)
    except ValidationError:
        return False
    return True


def _is_web_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme in ("https", "http") and bool(parts.hostname)
