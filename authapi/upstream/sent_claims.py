"""What a provider sent about a user, in parts. A test of a connection stores the parts; a preview maps them as a login does. Pure.

A part is missing if the provider did not send it. A provider of OAuth 2.0 has one part: the result of the mapping. No part is a token:
the ID token is stored as its claims.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from authapi.upstream.saml.claims import NameId, Statement
from foundation.json_values import json_problem
from foundation.secrets.claim_secrets import is_secret_claim

ID_TOKEN, USERINFO = "id_token", "userinfo"
# The part with the claims that a browser posts in a form, together with the authorization code. An example is the user's name. Claims of
# the ID token override these claims.
FORM = "form"
NAME_ID, NAME_ID_FORMAT, ATTRIBUTES = "name_id", "name_id_format", "attributes"
# The part with the JSON of a profile, as the calls of a provider of OAuth 2.0 return it. A test does not store this part.
DOCUMENT = "document"
# The part with the claims that the expressions of the provider return for this JSON.
CLAIMS = "claims"
# Maximum size of one claim, in bytes. The longest value in a profile, the URL in `picture`, has at most 2,048 characters.
_LONGEST_CLAIM = 4 * 1024
# The longest name that a row of the sample form accepts. Staff enter claims in this form to preview a profile.
_LONGEST_NAME = 512
_MOST_CHARACTERS = 64 * 1024
# Maximum number of claims: the sample form has this number of rows.
_MOST_CLAIMS = 200
# A preview needs these claims for the checks of a login: `sub` of the userinfo answer must equal `sub` of the ID token, and
# `hosted_domains` must contain `hd`.
ALWAYS_KEPT = frozenset({"sub", "hd"})


@dataclass(frozen=True)
class Kept:
    """The parts with every claim that is stored, and the names of the claims that are not stored."""

    parts: dict[str, Any]
    left_out: list[str]


def kept_claims(sent: Mapping[str, Any], *, read: Collection[str] = ALWAYS_KEPT) -> Kept:
    """Return the claims to store, with their types; `read` has the names of the claims that the connection reads.

    A claim is stored whole or not at all, because a preview with a shortened value could show a wrong profile. Claims are left out if
    they are secrets, if they are too long or too many, or if the database cannot store them. The claims that the connection reads are
    stored first, so that other claims do not use up the permitted size.
    """
    parts: dict[str, Any] = {}
    left_out: list[str] = []
    length = count = 0
    for part, name, value in sorted(_each(sent), key=lambda claim: _rank(claim[1], read)):
        size = _size(name, value)
        if size is None or not _has_room(size, length, count) or _is_hidden(name, value, read):
            left_out.append(printable(name or part))
            continue
        length, count = length + size, count + 1
        if name is None:
            parts[part] = value
        else:
            parts.setdefault(part, {})[name] = value
    empty: dict[str, Any] = {part: {} for part, value in sent.items() if isinstance(value, Mapping) and part not in parts}
    return Kept({**parts, **empty}, left_out[:_MOST_CLAIMS])


def is_hidden_attribute(names: Sequence[str], values: Sequence[str], *, read: Collection[str]) -> bool:
    """Tell whether to hide the values of an attribute in the stored message of a test. `names` are all names of the attribute."""
    if any(name in read for name in names):
        return is_secret_claim(None, values)
    return any(is_secret_claim(name, values) for name in names) or is_secret_claim(None, values)


def stored_profile(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return the profile of a login without values that are tokens: an attribute map can copy a token from a claim."""
    return {name: value for name, value in profile.items() if not is_secret_claim(None, value)}


def parts_of(statement: Statement) -> dict[str, Any]:
    """Convert the statement of an assertion to parts."""
    named = statement.name_id
    name_id = {} if named is None else {NAME_ID: named.value, NAME_ID_FORMAT: named.format}
    return {**name_id, ATTRIBUTES: {name: list(values) for name, values in statement.attributes.items()}}


def statement_in(parts: Mapping[str, Any]) -> Statement:
    """Convert parts back to a statement; the inverse of `parts_of`."""
    name_id = NameId(parts[NAME_ID], parts.get(NAME_ID_FORMAT, "")) if parts.get(NAME_ID) else None
    return Statement("", name_id, {name: tuple(values) for name, values in parts.get(ATTRIBUTES, {}).items()})


def _each(sent: Mapping[str, Any]) -> Iterator[tuple[str, str | None, Any]]:
    """Yield the part, the name and the value of each claim. For a part that is a single value, the name is None."""
    for part, value in sent.items():
        if isinstance(value, Mapping):
            yield from ((part, name, inner) for name, inner in value.items())
        else:
            yield part, None, value


def _rank(name: str | None, read: Collection[str]) -> int:
    """Return the rank of a claim. Claims with the lowest rank are stored first. `name` is None for a part that is a single value."""
    return 0 if name is None or name in ALWAYS_KEPT else 1 if name in read else 2


def _has_room(size: int, length: int, count: int) -> bool:
    return size <= _LONGEST_CLAIM and length + size <= _MOST_CHARACTERS and count < _MOST_CLAIMS


def _size(name: str | None, value: Any) -> int | None:
    """Return the length of a claim as JSON; None if its name is too long or if the database cannot store the claim."""
    if len(name or "") > _LONGEST_NAME or json_problem(name) or json_problem(value):
        return None
    return len((name or "").encode()) + len(orjson.dumps(value))


def _is_hidden(name: str | None, value: Any, read: Collection[str]) -> bool:
    """Tell whether a claim is a secret. The subject of a user is never a secret: its name is `sub`, and its value is a string."""
    is_subject = name == "sub" and isinstance(value, str)
    return not is_subject and is_secret_claim(name, value, is_read=name in read)


def printable(name: str) -> str:
    """Return the name of a claim as a page shows it."""
    return "".join(character for character in name if character.isprintable())[:100]
