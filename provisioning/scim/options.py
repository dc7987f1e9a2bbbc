"""The options of a SCIM action. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

UPDATE_MODES = ("put", "patch", "patch_per_attribute")
_SWITCHES = ("upsert", "adopt_on_conflict", "enterprise")


class OptionsRefused(ValueError):
    """The options cannot be used."""


@dataclass(frozen=True)
class ScimOptions:
    """How updates are written, and what happens to users that the server lacks or already has.

    `upsert` creates a missing user on update, `adopt_on_conflict` takes over an existing resource with the same,
    verified e-mail address, `enterprise` switches on the rows of the Enterprise User extension.
    """

    update_mode: str = "put"
    upsert: bool = False
    adopt_on_conflict: bool = False
    enterprise: bool = False


def parse_options(options: Mapping[str, Any]) -> ScimOptions:
    """Read the options; raise `OptionsRefused` with a sentence for an unknown name or value."""
    unknown = sorted(set(options) - {"update_mode", *_SWITCHES})
    if unknown:
        raise OptionsRefused(f"Unknown option: {', '.join(unknown)}.")
    if options.get("update_mode", "put") not in UPDATE_MODES:
        raise OptionsRefused(f"update_mode is one of {', '.join(UPDATE_MODES)}.")
    for name in _SWITCHES:
        if not isinstance(options.get(name, False), bool):
            raise OptionsRefused(f"{name} is true or false.")
    return ScimOptions(**options)
