"""The searchable fields of a user, and how each field is compared. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """How the values of a field are compared."""

    FOLDED = auto()  # text, ignoring letter case
    TEXT = auto()  # text with letter case
    DOMAIN = auto()  # the text after the last at sign, ignoring letter case
    SWITCH = auto()  # true or false
    MOMENT = auto()
    NUMBER = auto()
    ADDRESS = auto()
    JSON = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """One searchable field, stored in `column`. If `needs` names a column, documents omit the field unless this column has a value.

    `is_narrow` forbids wildcards and ranges on a field of JSON.
    """

    column: str
    kind: Kind
    needs: str = ""
    is_narrow: bool = False


FIELDS: dict[str, Field] = {
    "user_id": Field("user_id", Kind.TEXT),
    "email": Field("email", Kind.FOLDED),
    "email.domain": Field("email", Kind.DOMAIN),
    "email_verified": Field("email_verified", Kind.SWITCH, needs="email"),
    "username": Field("username", Kind.FOLDED),
    "phone_number": Field("phone_number", Kind.TEXT),
    "phone_verified": Field("phone_verified", Kind.SWITCH, needs="phone_number"),
    "name": Field("name", Kind.FOLDED),
    "nickname": Field("nickname", Kind.FOLDED),
    "given_name": Field("given_name", Kind.FOLDED),
    "family_name": Field("family_name", Kind.FOLDED),
    "picture": Field("picture", Kind.TEXT),
    "blocked": Field("blocked", Kind.SWITCH),
    "created_at": Field("created_at", Kind.MOMENT),
    "updated_at": Field("updated_at", Kind.MOMENT),
    "last_login": Field("last_login", Kind.MOMENT),
    "last_password_reset": Field("last_password_reset", Kind.MOMENT),
    "last_ip": Field("last_ip", Kind.ADDRESS),
    "logins_count": Field("logins_count", Kind.NUMBER),
    "multifactor": Field("multifactor", Kind.JSON, is_narrow=True),
}
METADATA: dict[str, Field] = {
    "app_metadata": Field("app_metadata", Kind.JSON),
    # Users can write this metadata, so it can be large. `is_narrow` limits the cost of a search in it.
    "user_metadata": Field("user_metadata", Kind.JSON, is_narrow=True),
}
IDENTITY_PARTS = ("connection", "provider", "user_id", "isSocial")
# The fields that a term without a field searches.
WITHOUT_FIELD = ("email", "name", "given_name", "family_name", "nickname", "username", "user_id", "phone_number")
# The columns of the trigram index, in the order of the index (`identity.search.indexes`).
INDEXED_TEXT = ("email", "name", "nickname", "given_name", "family_name", "username")
# The columns of the index of metadata.
INDEXED_JSON = ("app_metadata", "user_metadata")
KNOWN = (*FIELDS, *(f"{name}.…" for name in METADATA), *(f"identities.{part}" for part in IDENTITY_PARTS))
