"""Starts the jobs that warn a user by mail. `accounts.security_mails` runs the jobs."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils import timezone

from authapi.models import Client
from foundation.database.transactions import unit_of_work
from identity.languages import asked_language
from identity.models import Job, User
from identity.services.jobs import send_after_commit
from identity.services.saving import validated_save


@unit_of_work
def start_leak_mail(*, user: User, client: Client | None, ip: str, address: str) -> Job:
    """Start a job that tells the user that their password was found in a breach."""
    return _start(Job.Type.LEAKED_PASSWORD_EMAIL, user, client, {"ip": ip, "address": address})


@unit_of_work
def start_new_device_mail(*, user: User, client: Client | None, ip: str, address: str, login: Mapping[str, str]) -> Job:
    """Start a job that notifies the user of a login in a new browser.

    `login` describes the login: `country`, `browser` and `system`, empty if unknown.
    """
    told = {f"login_{name}": value for name, value in login.items()}
    return _start(Job.Type.NEW_DEVICE_EMAIL, user, client, {"ip": ip, "address": address, **told})


def _start(job_type: Job.Type, user: User, client: Client | None, facts: Mapping[str, str]) -> Job:
    asked = {
        "user_id": user.user_id,
        "client_id": client.client_id if client else "",
        "language": asked_language(),
        "at": timezone.now().isoformat(),
        **facts,
    }
    job = Job(tenant_id=user.tenant_id, type=job_type, connection=user.connection)
    job.parameters = {name: value for name, value in asked.items() if value}
    validated_save(job)
    send_after_commit(job)
    return job
