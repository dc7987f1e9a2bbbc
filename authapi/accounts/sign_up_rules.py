"""The identifiers and metadata that a new user of a connection must or may have. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from identity.options.connection_options import takes_username

IDENTIFIERS = ("email", "username", "phone_number")
NAMES = ("given_name", "family_name", "name", "nickname", "picture")
# Limits of `user_metadata` (contract, 2.10): the number of entries, and the lengths of a name and of a value.
_MOST_METADATA, _LONGEST_KEY, _LONGEST_VALUE = 10, 100, 500
_USERNAME_LENGTHS = (1, 15)
_LONGEST_USERNAME = 128


class Demand(Enum):
    """Whether a sign-up requires an identifier, accepts it or refuses it."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    INACTIVE = "inactive"


def demands(options: Mapping[str, Any]) -> dict[str, Demand]:
    """Return for each identifier whether a sign-up at a connection with these options requires, accepts or refuses the identifier."""
    attributes = options.get("attributes")
    if isinstance(attributes, dict):
        return {name: _demand(attributes.get(name)) for name in IDENTIFIERS}
    username = Demand.REQUIRED if takes_username(options) else Demand.INACTIVE
    return {"email": Demand.REQUIRED, "username": username, "phone_number": Demand.INACTIVE}


def username_lengths(options: Mapping[str, Any]) -> tuple[int, int]:
    """Return the minimum and the maximum length of a username."""
    attributes = _object(_object(_object(options.get("attributes")).get("username")).get("validation"))
    plain = _object(_object(options.get("validation")).get("username"))
    shortest = attributes.get("min_length") or plain.get("min") or _USERNAME_LENGTHS[0]
    longest = attributes.get("max_length") or plain.get("max") or _USERNAME_LENGTHS[1]
    return _bounded(shortest, _USERNAME_LENGTHS[0]), _bounded(longest, _USERNAME_LENGTHS[1])


def metadata_problem(metadata: Any) -> str | None:
    """Return the error of the `user_metadata` of a sign-up, or None."""
    if not isinstance(metadata, dict):
        return "user_metadata must be an object."
    if len(metadata) > _MOST_METADATA:
        return f"user_metadata has more than {_MOST_METADATA} entries."
    if not all(isinstance(name, str) and len(name) <= _LONGEST_KEY for name in metadata):
        return f"A name in user_metadata is longer than {_LONGEST_KEY} characters."
    if not all(isinstance(value, str) and len(value) <= _LONGEST_VALUE for value in metadata.values()):
        return f"Values in user_metadata must be texts of at most {_LONGEST_VALUE} characters."
    return None


def _demand(attribute: Any) -> Demand:
    if not isinstance(attribute, dict):
        return Demand.INACTIVE
    status = _object(attribute.get("signup")).get("status")
    if status in [demand.value for demand in Demand]:
        return Demand(status)
    return Demand.INACTIVE if _object(attribute.get("identifier")).get("active") is False else Demand.REQUIRED


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _bounded(length: Any, usual: int) -> int:
    return min(length, _LONGEST_USERNAME) if isinstance(length, int) and not isinstance(length, bool) and length > 0 else usual
