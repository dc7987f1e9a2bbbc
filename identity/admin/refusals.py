"""Exceptions of services that the admin shows as refusals. Apps that import this app add their own exceptions."""

from __future__ import annotations

from django import forms
from django.core.exceptions import ValidationError

from identity.services.failures import Invalid, ServiceError

_refusals: list[type[Exception]] = [ServiceError]


def also_refuses(exception: type[Exception]) -> None:
    """Make the admin show `exception` as a refusal. Its text must be a sentence without secrets."""
    if exception not in _refusals:
        _refusals.append(exception)


def refusals() -> tuple[type[Exception], ...]:
    """Return all exceptions that are refusals, for an `except` clause."""
    return tuple(_refusals)


def sentences(refusal: Exception) -> dict[str | None, list[str]]:
    """Return the texts of a refusal by field. Texts about no field have the key None."""
    if isinstance(refusal, Invalid):
        return dict(refusal.errors.items())
    return {None: [str(refusal)]}


def add_to_form(form: forms.BaseForm, refusal: Exception) -> None:
    """Add the texts of a refusal to the fields of the form, and other texts to the form itself."""
    for field, texts in sentences(refusal).items():
        if field in form.fields:
            form.add_error(field, ValidationError(texts))
        else:
            form.add_error(None, ValidationError([f"{field}: {text}" if field else text for text in texts]))


def as_text(refusal: Exception) -> str:
    """Return a refusal as one line."""
    return " ".join(
        text if field is None else f"{field.replace('_', ' ')}: {text}" for field, texts in sentences(refusal).items() for text in texts
    )
