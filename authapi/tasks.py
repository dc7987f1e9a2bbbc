"""Celery tasks: scheduled work, and notifying clients of logouts. All tasks are idempotent."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task
from django.conf import settings

from authapi import row_acts  # noqa: F401  (registers the bulk acts of the admin)
from authapi.accounts import account_mails, security_mails  # noqa: F401  (they register the steps of their jobs)
from authapi.accounts.attack_notices import send_due_notices
from authapi.accounts.passwordless import messages  # noqa: F401  (registers the steps of its jobs)
from authapi.expiry import drop_ended
from authapi.login.sessions import end_expired_sessions
from authapi.protocols.oauth.back_channel import send_notice
from authapi.protocols.oauth.logout_notices import SEND_NOTICE, due_notices
from authapi.tokens.keys import rotate_due_keys
from authapi.upstream.metadata_refresh import REFRESH, due_metadata, refresh


@shared_task(name="authapi.prune")
def prune() -> None:
    """Delete expired rows."""
    drop_ended()


@shared_task(name="authapi.end_sessions")
def end_sessions() -> None:
    """End the expired sessions."""
    end_expired_sessions()


@shared_task(name="authapi.send_attack_notices")
def send_attack_notices() -> None:
    """Send the due mails about attacks to administrators."""
    send_due_notices()


@shared_task(name="authapi.rotate_keys")
def rotate_keys() -> None:
    """Rotate the signing keys that are due."""
    if settings.SIGNING_KEY_DAYS:
        rotate_due_keys(timedelta(days=settings.SIGNING_KEY_DAYS))


@shared_task(name=SEND_NOTICE)
def send_logout_notice(notice_id: str) -> None:
    """Notify one client of a logout, if the client was not notified before."""
    send_notice(int(notice_id))


@shared_task(name=REFRESH)
def refresh_provider_metadata(row_id: str) -> None:
    """Fetch the metadata of one provider, unless another task has fetched the metadata in the meantime."""
    refresh(int(row_id))


@shared_task(name="authapi.refresh_metadata_of_providers")
def refresh_metadata_of_providers() -> None:
    """Start a task for each provider whose metadata is due, so that one slow provider does not delay the others."""
    for row_id in due_metadata():
        refresh_provider_metadata.delay(str(row_id))


@shared_task(name="authapi.send_logout_notices")
def send_logout_notices() -> None:
    """Start a task for each due notice: notices that were postponed, and notices whose task message was lost."""
    for notice_id in due_notices():
        send_logout_notice.delay(str(notice_id))
