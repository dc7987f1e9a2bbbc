"""Dry runs of the first dead letters of a bulk redelivery: their requests, and the changes that these requests would make on the server."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from django.contrib import admin
from django.http import HttpRequest

from events.admin.entities import entities_of
from foundation.admin.panels import Cell, Panel
from foundation.differences import value_text
from identity.admin.refusals import as_text, refusals
from provisioning.dead_letters.redelivery_preview import Preview, preview
from provisioning.models import DeadLetter

MOST_TRIED = 5
# The name of the button that shows the changes before a redelivery. A request with this name never starts the redelivery.
CHANGES = "changes"
# Staff wait for the page, so no dry run starts after these seconds.
_SECONDS = 10.0
_COLUMNS = ("Event", "Request", "Attribute", "Now", "After")


def sample_changes(site: admin.AdminSite, request: HttpRequest, letters: Iterable[DeadLetter]) -> Panel:
    """Run dry runs of at most `MOST_TRIED` dead letters, one after the other. Nothing is changed."""
    tried = list(letters)[:MOST_TRIED]
    names, until = names_of(site, request, tried), time.monotonic() + _SECONDS
    rows: list[Sequence[Cell]] = []
    for letter in tried:
        about = f"{letter.event_type} of {names[letter.pk]}"
        rows += _rows(about, letter) if time.monotonic() < until else [_told(about, "Not shown: the server answers too slowly.")]
    count = len(tried)
    title = f"Changes that the first {count} dead letters would make on the server" if count > 1 else "Changes on the server"
    return Panel(title, _COLUMNS, rows)


def names_of(site: admin.AdminSite, request: HttpRequest, letters: Iterable[DeadLetter]) -> dict[int, str]:
    """Return the name of the entity of each dead letter. If the entity is deleted, or the account may not see it, return its key."""
    read = list(letters)
    found = entities_of(site, request, [(letter.tenant_id, letter.key) for letter in read])
    entities = {letter.pk: found[letter.tenant_id, letter.key] for letter in read}
    return {key: entity.text if entity.url else entity.root for key, entity in entities.items()}


def _rows(about: str, letter: DeadLetter) -> list[Sequence[Cell]]:
    try:
        # The page itself says that the stream is held, so no row repeats this.
        shown = preview(letter, current_profile=False, names_hold=False)
    except refusals() as refusal:
        return [_told(about, as_text(refusal))]
    request = f"{shown.verb} {shown.path}" if shown.verb else "Nothing is sent."
    notes = " ".join(shown.notes)
    if not shown.changes:
        return [(Cell(about), Cell(request, note=notes), Cell(_without_changes(shown)), Cell(""), Cell(""))]
    first, *others = [
        (Cell(change["path"]), Cell(value_text(change["before"])), Cell(value_text(change["after"]))) for change in shown.changes
    ]
    return [(Cell(about), Cell(request, note=notes), *first), *((Cell(about), Cell(""), *cells) for cells in others)]


def _told(about: str, text: str) -> Sequence[Cell]:
    return (Cell(about), Cell(text), Cell(""), Cell(""), Cell(""))


def _without_changes(shown: Preview) -> str:
    """Return the effect of a request that changes no attribute."""
    if not shown.verb:
        return ""
    return "The account would be deleted." if shown.verb == "DELETE" else "No attribute would change."
