"""The parameter `claims` (OpenID Connect Core 1.0, 5.5): it requests single claims in the id token and the profile. Uses no database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from authapi.tokens.profile_claims import PROFILE_CLAIMS

_MOST_CLAIMS = 100
_MOST_VALUES = 20
_LONGEST_VALUE = 300


class ClaimsMalformed(ValueError):
    """The parameter is malformed; the text gives the reason."""


@dataclass(frozen=True)
class AskedClaims:
    """The claims in a request. Unknown claims are ignored (5.5).

    `subjects` are the ids of the users who may log in. `contexts` are the values requested for `acr`, best first. With `requires_context`,
    a login that meets none of these contexts fails. `wants_context` is true if the request contains `acr` without values.
    """

    id_token: tuple[str, ...] = ()
    userinfo: tuple[str, ...] = ()
    subjects: frozenset[str] = frozenset()
    contexts: tuple[str, ...] = ()
    requires_context: bool = False
    wants_context: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All claims of the profile that are requested for the id token or the profile, each once."""
        return tuple(dict.fromkeys((*self.id_token, *self.userinfo)))


NONE = AskedClaims()


def read_claims(text: str) -> AskedClaims:
    """Return the requested claims. Raises `ClaimsMalformed`."""
    if not text:
        return NONE
    try:
        sent = orjson.loads(text)
    except (ValueError, RecursionError) as error:
        raise ClaimsMalformed("The parameter `claims` is not JSON.") from error
    if not isinstance(sent, dict):
        raise ClaimsMalformed("The parameter `claims` must be a JSON object.")
    id_token, userinfo = _named(sent, "id_token"), _named(sent, "userinfo")
    context = id_token.get("acr")
    contexts = tuple(value for value in _values(context) if isinstance(value, str))
    return AskedClaims(
        id_token=_of_profile(id_token),
        userinfo=_of_profile(userinfo),
        subjects=_subjects(id_token, userinfo),
        contexts=contexts,
        requires_context=bool(contexts and context and context.get("essential")),
        wants_context="acr" in id_token and not contexts,
    )


def _named(sent: Mapping[str, Any], member: str) -> dict[str, dict[str, Any] | None]:
    """Return the claims in one member of the parameter (`id_token` or `userinfo`), each with its options."""
    claims = sent.get(member)
    if claims is None:
        return {}
    if not isinstance(claims, dict) or len(claims) > _MOST_CLAIMS:
        raise ClaimsMalformed(f"The {member} of the parameter `claims` must be an object of at most {_MOST_CLAIMS} claims.")
    for name, said in claims.items():
        if not _is_readable(said):
            raise ClaimsMalformed(f"Wrong value for {_plain(name)} in `claims`: send null, or `essential`, `value` and `values`.")
    return claims


def _is_readable(said: Any) -> bool:
    if said is None:
        return True
    if not isinstance(said, dict) or not isinstance(said.get("essential", False), bool):
        return False
    values = said.get("values", [])
    return isinstance(values, list) and len(values) <= _MOST_VALUES and all(_is_short(value) for value in _values(said))


def _is_short(value: Any) -> bool:
    return not isinstance(value, str) or len(value) <= _LONGEST_VALUE


def _values(said: Mapping[str, Any] | None) -> list[Any]:
    """Return the requested values of a claim, best first."""
    if not said:
        return []
    return [*([said["value"]] if said.get("value") is not None else []), *said.get("values", [])]


def _subjects(*members: Mapping[str, dict[str, Any] | None]) -> frozenset[str]:
    """Return the allowed user ids of `sub`. `id_token` and `userinfo` are about one user, so if both contain ids, only common ids count."""
    wanted = [frozenset(str(value) for value in _values(member["sub"])) for member in members if _values(member.get("sub"))]
    if not wanted:
        return frozenset()
    common = frozenset.intersection(*wanted)
    if not common:
        raise ClaimsMalformed("The parameter `claims` names two different users in `id_token` and `userinfo`.")
    return common


def _of_profile(claims: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name for name in claims if name in PROFILE_CLAIMS)


def _plain(name: str) -> str:
    return "".join(letter if (letter.isascii() and letter.isalnum()) or letter in "_-" else "?" for letter in name[:64])
