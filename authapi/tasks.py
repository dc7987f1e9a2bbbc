"""Celery's edges: calendar work, and telling clients of logouts. Running any of them twice is harmless."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task
from django.conf import settings

from authapi import row_acts  # noqa: F401  (it registers what jobs of the admin do)
from authapi.accounts import account_mails  # noqa: F401  (it registers what its jobs do)
from authapi.expiry import drop_ended
from authapi.login.sessions import end_expired_sessions
from authapi.protocols.oauth.back_channel import send_notice
from authapi.protocols.oauth.logout_notices import SEND_NOTICE, due_notices
from authapi.tokens.keys import rotate_due_keys


@shared_task(name="authapi.prune")
def prune() -> None:
    """Drop what has ended."""
    drop_ended()


@shared_task(name="authapi.end_sessions")
def end_sessions() -> None:
    """End the sessions whose time is over."""
    end_expired_sessions()


@shared_task(name="authapi.rotate_keys")
def rotate_keys() -> None:
    """Rotate the signing keys whose time has come."""
    if settings.SIGNING_KEY_DAYS:
        rotate_due_keys(timedelta(days=settings.SIGNING_KEY_DAYS))


@shared_task(name=SEND_NOTICE)
def send_logout_notice(notice_id: str) -> None:
    """Tell one client of a logout, if it is still to be told."""
    send_notice(int(notice_id))


@shared_task(name="authapi.send_logout_notices")
def send_logout_notices() -> None:
    """Send the notices that are due: those put off, and those whose message was lost."""
    for notice_id in due_notices():
        send_logout_notice.delay(str(notice_id))
