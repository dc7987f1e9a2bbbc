"""The attributes of RFC 7643 that a mapping may set, as data: attributes of the core User (4.1, 8.7.1) and the Enterprise User (4.3). Pure.

Attributes of other extensions are not described; their values keep their JSON type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from provisioning.mapping.schemas import ENTERPRISE_USER, USER

# The types of RFC 7643, 2.3, that writable attributes of these two schemas use.
Kind = Literal["string", "boolean", "reference", "binary", "complex"]


@dataclass(frozen=True)
class Attribute:
    """One attribute: its type, whether it is a list, and the parts of a complex attribute by name."""

    kind: Kind = "string"
    is_list: bool = False
    parts: Mapping[str, Attribute] = field(default_factory=dict)

    def part(self, name: str) -> Attribute | None:
        """Return a part by its name, compared case-insensitively (RFC 7643, 2.1)."""
        return _by_name(self.parts, name)


_TEXT = Attribute()
_SWITCH = Attribute("boolean")
_REFERENCE = Attribute("reference")
_BINARY = Attribute("binary")


def _texts(*names: str) -> dict[str, Attribute]:
    return dict.fromkeys(names, _TEXT)


def _list_of(value: Attribute = _TEXT) -> Attribute:
    """Return a list attribute with the default parts of its elements (RFC 7643, 2.4)."""
    return Attribute("complex", is_list=True, parts={"value": value, **_texts("display", "type"), "primary": _SWITCH})


_NAME = Attribute("complex", parts=_texts("formatted", "familyName", "givenName", "middleName", "honorificPrefix", "honorificSuffix"))
_ADDRESS_PARTS = _texts("formatted", "streetAddress", "locality", "region", "postalCode", "country", "type")
_SCHEMAS: dict[str, dict[str, Attribute]] = {
    USER: {
        **_texts("externalId", "userName", "displayName", "nickName", "title", "userType", "preferredLanguage", "locale", "timezone"),
        "name": _NAME,
        "profileUrl": _REFERENCE,
        "active": _SWITCH,
        **{name: _list_of() for name in ("emails", "phoneNumbers", "ims", "entitlements", "roles")},
        "photos": _list_of(_REFERENCE),
        "addresses": Attribute("complex", is_list=True, parts={**_ADDRESS_PARTS, "primary": _SWITCH}),
        "x509Certificates": _list_of(_BINARY),
    },
    ENTERPRISE_USER: {
        **_texts("employeeNumber", "costCenter", "organization", "division", "department"),
        "manager": Attribute("complex", parts={**_texts("value", "displayName"), "$ref": _REFERENCE}),
    },
}
_SCHEMAS_BY_URN = {urn.casefold(): schema for urn, schema in _SCHEMAS.items()}


def is_described(urn: str) -> bool:
    """Tell whether the attributes of this schema are known; an empty URN is the core User."""
    return (urn or USER).casefold() in _SCHEMAS_BY_URN


def attribute_of(urn: str, name: str) -> Attribute | None:
    """Return an attribute of a schema; None if this module does not describe the schema or the attribute."""
    return _by_name(_SCHEMAS_BY_URN.get((urn or USER).casefold(), {}), name)


def _by_name(attributes: Mapping[str, Attribute], name: str) -> Attribute | None:
    if name in attributes:
        return attributes[name]
    return next((attribute for known, attribute in attributes.items() if known.casefold() == name.casefold()), None)
