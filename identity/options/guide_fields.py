"""A guide: the fields of a strategy's form, and what to do at the provider. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class OptionField:
    """One option as a field. A dot in the name separates an object from its member.

    `words` are words that are stored as one text or as a list. `area` is a long text that is not secret. Three kinds are objects that are
    entered as rows: `claims` maps profile fields to claims, `texts` maps names to texts, and `parameters` maps names to rules of
    `upstream_params`.
    """

    name: str
    label: str
    help_text: str = ""
    kind: Literal[
        "text", "address", "secret", "key", "words", "lines", "claims", "texts", "parameters", "switch", "choice", "number", "area"
    ] = "text"
    is_required: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    # The value of a switch that is not set.
    default: bool = False
    # The range of a number.
    bounds: tuple[int, int] | None = None
    # The headings of the two columns of `claims` and `texts`.
    columns: tuple[str, str] = ("Name", "Value")
    # The fields of the profile that `claims` may fill, and whether several claims may fill one field.
    profile_fields: tuple[str, ...] = ()
    is_repeatable: bool = False
    # For a secret such as `decryptionKey.key`: whether `decryptionKey` may also be the secret itself, as a text instead of an object.
    is_read_from_text: bool = False
    # Whether the field is in the folded part of the form, because few connections need it.
    is_further: bool = False


@dataclass(frozen=True)
class Guide:
    """How a connection of a strategy is set up. `console` is where the application is registered at the provider."""

    label: str
    fields: tuple[OptionField, ...]
    steps: tuple[str, ...] = ()
    console: str = ""
    # The value to enter at the provider: the callback address, the callback address with the name of the connection, or nothing.
    callback: Literal["plain", "named", ""] = "plain"
    # Whether users can log in through such a connection.
    has_login: bool = True
