"""The base class of all factories. It saves one row whose texts contain the name of its tenant."""

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
    """Creates and saves a row, without the services of the product. `tenant_id` is required unless a related row determines the tenant."""

    class Meta:
        abstract = True

    @classmethod
    def _create(cls, model_class: type[Row], *args: Any, **fields: Any) -> Row:
        row = model_class(**fields)
        row.save(force_insert=True)
        return row


def own_text(length: int = 60) -> LazyAttributeSequence:
    """Declare a unique text that contains the name of the tenant.

    With this name, tests detect a page that shows the text to another tenant.
    """
    return LazyAttributeSequence(lambda row, number: f"{row.tenant_id}-{number}"[:length])


def own_number() -> LazyFunction:
    """Declare a unique number, such as the key of an event."""
    return LazyFunction(lambda: secrets.randbelow(2**40))


def tenant_of(relation: str) -> SelfAttribute:
    """Declare that the row belongs to the tenant of a related row."""
    return SelfAttribute(f"{relation}.tenant_id")


def same(name: str = "tenant_id") -> SelfAttribute:
    """Declare, inside a `SubFactory`, that a field copies the field `name` of the outer row."""
    return SelfAttribute(f"..{name}")


def from_now(**parts: float) -> LazyFunction:
    """Declare a time with this difference from now."""
    return LazyFunction(lambda: timezone.now() + timedelta(**parts))
