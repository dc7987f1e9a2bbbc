"""Recipes for common applications: what administrators enter in the application, and the settings of the application in this service.

Pure data. `{place}` is the customer's name at the vendor: a subdomain, an organization or an id. Vendors change their addresses, so each
recipe names the page in the application on which the present addresses are shown.
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
    """The settings for one application. `place` explains the value of `{place}`, empty if no value is needed."""

    name: str
    title: str
    place: str
    where: str
    there: tuple[str, ...]
    callbacks: tuple[str, ...]
    addon: Mapping[str, Any] = field(default_factory=dict)

    def filled(self, place: str) -> tuple[list[str], dict[str, Any]]:
        """Return the callbacks and the add-on settings for one customer of the vendor."""
        addon: dict[str, Any] = json.loads(json.dumps(dict(self.addon)).replace(_PLACE, _quoted(place)))
        return [each.replace(_PLACE, place) for each in self.callbacks], addon


@cache
def recipes() -> dict[str, Recipe]:
    """Return every recipe by its name, in the order of the list."""
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
