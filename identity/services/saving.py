"""Validate and save one row, mapping errors of Django and PostgreSQL to errors of services."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from psycopg.errors import UniqueViolation

from foundation.json_values import json_problem, text_problem
from identity.services.failures import AlreadyExists, Invalid


def validated_save(row: models.Model, *, fields: list[str] | None = None) -> None:
    """Validate and save `row`: all columns, or only `fields` and the time of change.

    Raises `Invalid` for invalid values and `AlreadyExists` for a violated unique constraint. The database checks uniqueness, so of two
    concurrent requests only one succeeds.
    """
    _check_values(row, fields)
    try:
        row.clean_fields(exclude=None if fields is None else [field.name for field in row._meta.fields if field.name not in fields])
    except ValidationError as error:
        raise Invalid(error.message_dict) from error
    try:
        with transaction.atomic():
            row.save(update_fields=None if fields is None else [*fields, "updated_at"])
    except IntegrityError as error:
        if isinstance(error.__cause__, UniqueViolation):
            raise AlreadyExists(f"The {row._meta.verbose_name} already exists.") from error
        raise


def _check_values(row: models.Model, fields: list[str] | None) -> None:
    """Refuse text and JSON that the database or a consumer of the event would change."""
    problems = {}
    for field in row._meta.concrete_fields:
        if fields is not None and field.name not in fields:
            continue
        value = getattr(row, field.attname)
        problem = json_problem(value) if isinstance(field, models.JSONField) else text_problem(value) if isinstance(value, str) else None
        if problem:
            problems[field.name] = [problem]
    if problems:
        raise Invalid(problems)
