"""The base class of all factories: saves one row and puts the name of its tenant into it."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any, TypeVar

from django.db import models
from django.utils import timezone
from factory.base import Factory
from factory.declarations import LazyAttributeSequence, LazyFunction, SelfAttribute

Row = TypeVar("Row", bound=models.Model)


class RowFactory(Factory[Row]):
    """Creates and saves a row without the services. `tenant_id` is required unless a relation determines the tenant."""

    class Meta:
        abstract = True

    @classmethod
    def _create(cls, model_class: type[Row], *args: Any, **fields: Any) -> Row:
        row = model_class(**fields)
        row.save(force_insert=True)
        return row


def own_text(length: int = 60) -> LazyAttributeSequence:
    """Declare a unique text. It contains the name of the tenant, so that tests notice when a page of another tenant shows it."""
    return LazyAttributeSequence(lambda row, number: f"{row.tenant_id}-{number}"[:length])


def own_number() -> LazyFunction:
    """Declare a unique number, such as the key of an event."""
    return LazyFunction(lambda: secrets.randbelow(2**40))


def tenant_of(relation: str) -> SelfAttribute:
    """Declare that the row belongs to the tenant of the row that it refers to."""
    return SelfAttribute(f"{relation}.tenant_id")


def same(name: str = "tenant_id") -> SelfAttribute:
    """Declare, inside a `SubFactory`, that a field has the value of that field in the referring row."""
    return SelfAttribute(f"..{name}")


def from_now(**parts: float) -> LazyFunction:
    """Declare a time at this distance from now."""
    return LazyFunction(lambda: timezone.now() + timedelta(**parts))
