"""Secret options of connections at rest: each value sealed for its place, and what a change does to those that are there.

A sealed text is a token. A sealed value of another kind is `{"json": token}`, so that both are told apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from foundation.secrets import vault
from identity.options.schemas.nodes import Members, Parts, Path, is_declared, is_kept, joined, split, value_at
from identity.options.schemas.shared import TARGETS

# Each sealed value costs an encryption, and one when it is opened.
MOST_SEALED = 500
# As many names as a refusal repeats.
_NAMED = 5
Sealed = dict[str, Any]


class OptionsRefused(ValueError):
    """The options cannot be stored as they are. The text names members and never repeats a value."""


def seal_options(secrets: Mapping[Path, Any], *, place: str) -> Sealed:
    """Return each value sealed for `place` and its path."""
    return {path: _sealed(value, f"{place}:{path}") for path, value in secrets.items()}


def open_option(sealed: Any, path: Path, *, place: str) -> Any:
    """Return one value in clear. Raises `vault.SecretUnreadable`."""
    if isinstance(sealed, Mapping):
        return json.loads(vault.unseal(sealed["json"], place=f"{place}:{path}"))
    return vault.unseal(sealed, place=f"{place}:{path}")


def open_options(shown: Mapping[str, Any], sealed: Mapping[Path, Any], *, place: str) -> dict[str, Any]:
    """Return the whole options in clear. Raises `vault.SecretUnreadable`."""
    return joined(shown, {path: open_option(value, path, place=place) for path, value in sealed.items()})


def changed_options(
    schema: Members, sent: Mapping[str, Any], *, shown: Mapping[str, Any], sealed: Mapping[Path, Any], place: str
) -> tuple[dict[str, Any], Sealed]:
    """Return the readable and the sealed options after `sent` has replaced them.

    1. What was sent is parted by the schema.
    2. A sealed value that is sent again unchanged keeps its token, so nothing about the row changes.
    3. A sealed value that nothing sent names is kept (`is_kept`).
    4. Credentials are not kept when an address that they are sent to changes: `OptionsRefused` asks for them again.
    """
    parts = split(schema, sent)
    kept = {path: token for path, token in sealed.items() if path not in parts.secrets and is_kept(path, shown=shown, sent=sent)}
    if len(parts.secrets) + len(kept) > MOST_SEALED:
        raise OptionsRefused(f"At most {MOST_SEALED} members that are secret or unknown.")
    fresh = {path: value for path, value in parts.secrets.items() if not _is_same(value, sealed.get(path), path, place)}
    _refuse_redirected(schema, parts, shown=shown, sealed=sealed, kept=kept, place=place)
    same = {path: sealed[path] for path in parts.secrets if path not in fresh}
    # In one order, so that equal options are equal columns.
    return parts.shown, dict(sorted({**kept, **same, **seal_options(fresh, place=place)}.items()))


def _refuse_redirected(
    schema: Members, parts: Parts, *, shown: Mapping[str, Any], sealed: Mapping[Path, Any], kept: Mapping[Path, Any], place: str
) -> None:
    """Refuse to keep credentials whose target changes: the caller, who cannot read them, would be sent them."""
    credentials = sorted(path for path in kept if is_declared(schema, path))
    if not credentials:
        return
    now = joined(parts.shown, parts.secrets)
    for target in TARGETS:
        # A target with a secret in it is sealed itself, and kept with the others.
        before = _opened(sealed[target], target, place) if target in sealed else value_at(target, shown)
        if target not in kept and value_at(target, now) != before:
            names = ", ".join(credentials[:_NAMED]) + (f" and {len(credentials) - _NAMED} more" if len(credentials) > _NAMED else "")
            raise OptionsRefused(f"{target} changes, and {names} would be sent there: send {names} again, or null to remove.")


def _sealed(value: Any, place: str) -> Any:
    if isinstance(value, str):
        return vault.seal(value, place=place)
    return {"json": vault.seal(json.dumps(value), place=place)}


def _is_same(value: Any, sealed: Any, path: Path, place: str) -> bool:
    opened = None if sealed is None else _opened(sealed, path, place)
    # True and 1 are equal in Python and two values in JSON.
    return type(opened) is type(value) and json.dumps(opened, sort_keys=True) == json.dumps(value, sort_keys=True)


def _opened(sealed: Any, path: Path, place: str) -> Any:
    """Return the value in clear, None when its key is gone: null is never sealed, so it equals nothing that is sent."""
    try:
        return open_option(sealed, path, place=place)
    except vault.SecretUnreadable:
        return None
