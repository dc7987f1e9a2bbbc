"""The file of a finished export: a signed link that works for `EXPORT_LINK_SECONDS`, and its pieces, which every web process can read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.conf import settings
from django.core import signing
from django.db.models import Count, Sum
from django.db.models.functions import Length

from identity.models import Job, JobChunk
from identity.services.failures import NotFound, ServiceError

_SALT = "identity.export"
_FILE = re.compile(r"(job_[A-Za-z0-9]{16})\.(?:json|csv)\.gz")


class LinkExpired(ServiceError):
    """The link has expired; read the job again for a new link."""


@dataclass(frozen=True)
class ExportedFile:
    """An export file whose pieces are still stored."""

    job_id: str
    name: str
    size: int
    piece_count: int


def file_name(job: Job) -> str:
    """Return the name of the file of an export."""
    return f"{job.pk}.{job.parameters.get('format', 'json')}.gz"


def signed_path(job: Job) -> str:
    """Return path and query of a new link to the file. The link works for this tenant, for `EXPORT_LINK_SECONDS`."""
    value = signing.TimestampSigner(salt=f"{_SALT}:{job.tenant_id}").sign(file_name(job))
    return f"/exports/{file_name(job)}?signature={value.removeprefix(file_name(job) + ':')}"


def open_link(*, tenant_id: str, name: str, signature: str) -> ExportedFile:
    """Return the file of a link. Raises `LinkExpired`, or `NotFound` for a link of another tenant or file."""
    try:
        signing.TimestampSigner(salt=f"{_SALT}:{tenant_id}").unsign(f"{name}:{signature}", max_age=settings.EXPORT_LINK_SECONDS)
    except signing.SignatureExpired as error:
        raise LinkExpired from error
    except signing.BadSignature as error:
        raise NotFound("There is no such file.") from error
    return exported_file(tenant_id=tenant_id, name=name)


def exported_file(*, tenant_id: str, name: str) -> ExportedFile:
    """Return the file of a completed export of the tenant. Raises `NotFound`."""
    found = _FILE.fullmatch(name)
    jobs = Job.objects.of(tenant_id).filter(type=Job.Type.USERS_EXPORT, status=Job.Status.COMPLETED)
    job = jobs.filter(pk=found[1]).first() if found else None
    if job is None or file_name(job) != name:
        raise NotFound("There is no such file.")
    facts = job.chunks.aggregate(size=Sum(Length("content")), count=Count("pk"))
    return ExportedFile(job.pk, name, facts["size"] or 0, facts["count"])


def read_piece(file: ExportedFile, number: int) -> bytes:
    """Return one piece of the file. Raises `NotFound` if the file was pruned meanwhile."""
    chunk = JobChunk.objects.filter(job_id=file.job_id, number=number).first()
    if chunk is None:
        raise NotFound("There is no such file.")
    return bytes(chunk.content)
