"""Celery's edges: calendar work. Running any of them twice is harmless."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task
from django.conf import settings

from authapi.keys import rotate_due_keys
from authapi.services.tokens import prune_expired


@shared_task(name="authapi.prune")
def prune() -> None:
    """Drop what has expired."""
    prune_expired()


@shared_task(name="authapi.rotate_keys")
def rotate_keys() -> None:
    """Rotate the signing keys whose time has come."""
    if settings.SIGNING_KEY_DAYS:
        rotate_due_keys(timedelta(days=settings.SIGNING_KEY_DAYS))
