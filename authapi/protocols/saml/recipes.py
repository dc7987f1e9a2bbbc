"""Recipes for common applications: what their administrators enter there, and the settings that they need here. Pure data.

`{place}` stands for what the application is called at its maker: a subdomain, an organization or an id. Makers change their
addresses, so each recipe names the page of the application where they are shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("recipes.json")
_PLACE = "{place}"


@dataclass(frozen=True)
class Recipe:
    """Settings for one application. `place` says what people enter for `{place}`, empty where nothing is asked."""

    name: str
    title: str
    place: str
    where: str
    there: tuple[str, ...]
    callbacks: tuple[str, ...]
    addon: Mapping[str, Any] = field(default_factory=dict)

    def filled(self, place: str) -> tuple[list[str], dict[str, Any]]:
        """Return the callbacks and the settings of the add-on for one customer of the maker."""
        addon: dict[str, Any] = json.loads(json.dumps(dict(self.addon)).replace(_PLACE, _quoted(place)))
        return [each.replace(_PLACE, place) for each in self.callbacks], addon


@cache
def recipes() -> dict[str, Recipe]:
    """Return every recipe by its name, in the order in which they are listed."""
    found = json.loads(_FILE.read_text())
    made = [
        Recipe(
            name=each["name"],
            title=each["title"],
            place=each["place"],
            where=each["where"],
            there=tuple(each["there"]),
            callbacks=tuple(each["callbacks"]),
            addon=each["addon"],
        )
        for each in found
    ]
    return {recipe.name: recipe for recipe in made}


def _quoted(text: str) -> str:
    return json.dumps(text)[1:-1]
