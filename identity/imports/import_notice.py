"""The mail that tells the admins of a tenant that an import has ended."""

from __future__ import annotations

from identity.mail.sending import send_mail
from identity.models import Job, Staff
from identity.services.jobs import effect_of


@effect_of(Job.Type.USERS_IMPORT)
def mail_outcome(job: Job) -> None:
    """Tell every active admin of the tenant; platform operators belong to no tenant and are told nothing."""
    admins = Staff.objects.filter(tenant_id=job.tenant_id, is_active=True).order_by("pk")
    addresses = list(admins.values_list("email", flat=True))
    if addresses:
        send_mail("import_finished", to=addresses, context={"job": job, "tenant": job.tenant, "connection": job.connection or ""})
