"""What was sent to a person, read as the worker reads it."""

from __future__ import annotations

from authapi.accounts.passwordless.codes import Contents
from authapi.accounts.passwordless.messages import contents_of
from identity.models import Job


def jobs_of(tenant_id: str) -> list[Job]:
    """Return the messages that were asked for, oldest first."""
    return list(Job.objects.of(tenant_id).filter(type=Job.Type.PASSWORDLESS_CODE).order_by("created_at", "pk"))


def last_contents(tenant_id: str) -> Contents:
    """Return the code or the link of the newest message."""
    return contents_of(jobs_of(tenant_id)[-1])


def last_code(tenant_id: str) -> str:
    return last_contents(tenant_id).code


def wrong(code: str, *, by: int = 1) -> str:
    """Return another code of the same length."""
    return f"{(int(code) + by) % 10 ** len(code):0{len(code)}d}"
