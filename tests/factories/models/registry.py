"""The factory of each model, and the models without a factory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import models
from factory.base import Factory

from tests.factories.models import authapi, events, identity, provisioning

# Models without a factory, each with the reason.
WITHOUT_A_FACTORY = {
    "events.timeline": "rows of the whole database, written by the numberer",
    "events.databaseidentity": "one row of the whole database, written by the first process that starts",
    "events.head": "created together with its tenant",
    "events.tally": "counts of the whole database, shared by all tests",
    "provisioning.sweeper": "the one row for which the workers of a database compete",
}


def factories() -> Iterator[type[Factory[Any]]]:
    """Yield every factory of a model."""
    for module in (identity, authapi, events, provisioning):
        for factory in vars(module).values():
            is_ours = isinstance(factory, type) and issubclass(factory, Factory) and factory.__module__ == module.__name__
            if is_ours and not factory._meta.abstract:
                yield factory


FACTORIES: dict[type[models.Model], type[Factory[Any]]] = {factory._meta.model: factory for factory in factories()}
