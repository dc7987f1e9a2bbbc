"""Seals the secret options of connections, each bound to its path, and merges changes with the sealed options that exist.

A text is stored as its sealed text (`vault.seal`). A value of another type is stored as `{"json": <sealed text>}`, so that both forms can
be distinguished.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from foundation.secrets import vault
from identity.options.schemas.nodes import Members, Parts, Path, is_declared, is_kept, joined, split, value_at
from identity.options.schemas.shared import TARGETS

# Maximum number of sealed values, because each costs one encryption when it is stored and one decryption when it is read.
MOST_SEALED = 500
# Maximum number of names in the text of a refusal.
_NAMED = 5
Sealed = dict[str, Any]


class OptionsRefused(ValueError):
    """The options cannot be stored as they are. The text names members and never quotes a value."""


def seal_options(secrets: Mapping[Path, Any], *, place: str) -> Sealed:
    """Return each value sealed for `place` and its path."""
    return {path: _sealed(value, f"{place}:{path}") for path, value in secrets.items()}


def open_option(sealed: Any, path: Path, *, place: str) -> Any:
    """Return one value as clear text. Raises `vault.SecretUnreadable`."""
    if isinstance(sealed, Mapping):
        return json.loads(vault.unseal(sealed["json"], place=f"{place}:{path}"))
    return vault.unseal(sealed, place=f"{place}:{path}")


def open_options(shown: Mapping[str, Any], sealed: Mapping[Path, Any], *, place: str) -> dict[str, Any]:
    """Return all options as clear text. Raises `vault.SecretUnreadable`."""
    return joined(shown, {path: open_option(value, path, place=place) for path, value in sealed.items()})


def changed_options(
    schema: Members, sent: Mapping[str, Any], *, shown: Mapping[str, Any], sealed: Mapping[Path, Any], place: str
) -> tuple[dict[str, Any], Sealed]:
    """Return the readable and the sealed options after `sent` has replaced them.

    1. Split the sent options by the schema.
    2. If a client sends a sealed value again unchanged, the stored sealed text is kept, so the row does not change.
    3. A sealed value that the sent options do not name is kept (`is_kept`).
    4. If an address that receives credentials changes, the sent options must contain these credentials again, or null to remove them.
       Otherwise the sent options are refused (`OptionsRefused`).
    """
    parts = split(schema, sent)
    kept = {path: token for path, token in sealed.items() if path not in parts.secrets and is_kept(path, shown=shown, sent=sent)}
    if len(parts.secrets) + len(kept) > MOST_SEALED:
        raise OptionsRefused(f"At most {MOST_SEALED} members that are secret or unknown.")
    fresh = {path: value for path, value in parts.secrets.items() if not _is_same(value, sealed.get(path), path, place)}
    _refuse_redirected(schema, parts, shown=shown, sealed=sealed, kept=kept, place=place)
    same = {path: sealed[path] for path in parts.secrets if path not in fresh}
    # Sorted, so that equal options are always stored as the same value.
    return parts.shown, dict(sorted({**kept, **same, **seal_options(fresh, place=place)}.items()))


def _refuse_redirected(
    schema: Members, parts: Parts, *, shown: Mapping[str, Any], sealed: Mapping[Path, Any], kept: Mapping[Path, Any], place: str
) -> None:
    """Refuse to keep credentials whose target changes. Otherwise a caller who cannot read the credentials could redirect them."""
    credentials = sorted(path for path in kept if is_declared(schema, path))
    if not credentials:
        return
    now = joined(parts.shown, parts.secrets)
    for target in TARGETS:
        # A target is an address that receives credentials. A target that contains a secret is sealed itself, and is kept like other sealed
        # values.
        before = _opened(sealed[target], target, place) if target in sealed else value_at(target, shown)
        if target not in kept and value_at(target, now) != before:
            names = ", ".join(credentials[:_NAMED]) + (f" and {len(credentials) - _NAMED} more" if len(credentials) > _NAMED else "")
            raise OptionsRefused(
                f"{target} changes, so {names} would be sent elsewhere: send {names} again, or send null to remove the value."
            )


def _sealed(value: Any, place: str) -> Any:
    if isinstance(value, str):
        return vault.seal(value, place=place)
    return {"json": vault.seal(json.dumps(value), place=place)}


def _is_same(value: Any, sealed: Any, path: Path, place: str) -> bool:
    opened = None if sealed is None else _opened(sealed, path, place)
    # True and 1 are equal in Python but different values in JSON.
    return type(opened) is type(value) and json.dumps(opened, sort_keys=True) == json.dumps(value, sort_keys=True)


def _opened(sealed: Any, path: Path, place: str) -> Any:
    """Return the clear text, or None if its key is missing. Null is never sealed, so None differs from every sent value."""
    try:
        return open_option(sealed, path, place=place)
    except vault.SecretUnreadable:
        return None
