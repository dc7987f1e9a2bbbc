"""Celery's edges: calendar work, and telling clients of logouts. Running any of them twice is harmless."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task
from django.conf import settings

from authapi import row_acts  # noqa: F401  (it registers what jobs of the admin do)
from authapi.accounts import account_mails, security_mails  # noqa: F401  (they register what their jobs do)
from authapi.accounts.attack_notices import send_due_notices
from authapi.accounts.passwordless import messages  # noqa: F401  (it registers what its jobs do)
from authapi.expiry import drop_ended
from authapi.login.sessions import end_expired_sessions
from authapi.protocols.oauth.back_channel import send_notice
from authapi.protocols.oauth.logout_notices import SEND_NOTICE, due_notices
from authapi.tokens.keys import rotate_due_keys
from authapi.upstream.metadata_refresh import REFRESH, due_metadata, refresh


@shared_task(name="authapi.prune")
def prune() -> None:
    """Drop what has ended."""
    drop_ended()


@shared_task(name="authapi.end_sessions")
def end_sessions() -> None:
    """End the sessions whose time is over."""
    end_expired_sessions()


@shared_task(name="authapi.send_attack_notices")
def send_attack_notices() -> None:
    """Tell administrators of attacks, where a mail is due."""
    send_due_notices()


@shared_task(name="authapi.rotate_keys")
def rotate_keys() -> None:
    """Rotate the signing keys whose time has come."""
    if settings.SIGNING_KEY_DAYS:
        rotate_due_keys(timedelta(days=settings.SIGNING_KEY_DAYS))


@shared_task(name=SEND_NOTICE)
def send_logout_notice(notice_id: str) -> None:
    """Tell one client of a logout, if it is still to be told."""
    send_notice(int(notice_id))


@shared_task(name=REFRESH)
def refresh_provider_metadata(row_id: str) -> None:
    """Fetch the metadata of one provider, if it is due still."""
    refresh(int(row_id))


@shared_task(name="authapi.refresh_metadata_of_providers")
def refresh_metadata_of_providers() -> None:
    """Send the work that is due: each document is fetched by a task of its own, since a server may be slow."""
    for row_id in due_metadata():
        refresh_provider_metadata.delay(str(row_id))


@shared_task(name="authapi.send_logout_notices")
def send_logout_notices() -> None:
    """Send the notices that are due: those put off, and those whose message was lost."""
    for notice_id in due_notices():
        send_logout_notice.delay(str(notice_id))
