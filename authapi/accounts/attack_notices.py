"""Mails that notify a tenant's administrators of attacks: at most one mail for each kind of attack in a period.

A tenant has one row for each kind of attack (`AttackNotice`). An attack marks the row as due. The task that sends the mail counts the
attacks since the previous mail. If a worker crashes while it sends a mail, the mail is lost. This is acceptable: the next attack triggers
another mail, and the sign-in log keeps every line.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import structlog
from django.conf import settings
from django.utils import timezone

from authapi.models import AddressBlock, AttackNotice, SignIn
from foundation.database.transactions import unit_of_work
from identity.hosts import scheme
from identity.mail.sending import send_mail
from identity.models import Staff
from identity.stopped_tenants import of_running_tenants

log = structlog.get_logger(__name__)

_MOST_ADDRESSES, _MOST_SHOWN, _MOST_COUNTED = 50, 20, 1000
_AT_ONCE = 100
# The sign-in log gets the line of an attack shortly before the first notice is scheduled. The first notice therefore also counts the lines
# of the minute before it was scheduled.
_BEFORE = timedelta(minutes=1)
_LEAKS = {"pwd_leak": "logins", "signup_pwd_leak": "sign_ups", "reset_pwd_leak": "changes"}


@unit_of_work
def ask_for_notice(tenant_id: str, kind: AttackNotice.Kind, period: timedelta) -> None:
    """Schedule a mail to the administrators, no sooner than `period` after the previous mail of this kind."""
    now = timezone.now()
    rows = AttackNotice.objects.of(tenant_id).filter(kind=kind)
    row = rows.first()
    if row is None:
        new = AttackNotice(tenant_id=tenant_id, kind=kind, since=now - _BEFORE, due_at=now)
        AttackNotice.objects.of(tenant_id).bulk_create([new], ignore_conflicts=True)
        return
    due_at = max(now, row.sent_at + period) if row.sent_at else now
    if row.due_at is None:
        rows.filter(due_at=None).update(since=row.sent_at or now - _BEFORE, due_at=due_at)
    elif due_at < row.due_at:
        # The notice was scheduled with a longer period. Then the tenant shortened the period.
        rows.filter(due_at__gt=due_at).update(due_at=due_at)


def due_notices() -> list[int]:
    """Return the primary keys of the due notices of all running tenants, oldest first, at most `_AT_ONCE`."""
    rows = of_running_tenants(AttackNotice.all_tenants.filter(due_at__lte=timezone.now())).order_by("due_at")
    return list(rows.values_list("pk", flat=True)[:_AT_ONCE])


def send_due_notices() -> int:
    """Send the due mails; return the number of notices. If two workers run concurrently, each notice is still sent only once."""
    taken = [row for key in due_notices() if (row := _taken(key)) is not None]
    for row in taken:
        _send(row)
    return len(taken)


@unit_of_work
def _taken(key: int) -> AttackNotice | None:
    """Claim a notice if it is still due, so that no other worker sends it. Return the row as it was before the claim, or None."""
    now = timezone.now()
    due = of_running_tenants(AttackNotice.all_tenants.filter(pk=key, due_at__lte=now))
    row = due.select_for_update(skip_locked=True).first()
    if row is not None:
        AttackNotice.objects.of(row.tenant_id).filter(pk=key).update(since=None, due_at=None, sent_at=now)
    return row


def _send(row: AttackNotice) -> None:
    if not settings.MAIL_IS_CONFIGURED:
        return
    context = {"tenant": row.tenant_id, "kind": row.kind, "since": row.since, "link": _link(row), **_facts(row)}
    admins = Staff.objects.filter(tenant_id=row.tenant_id, is_active=True).order_by("pk")
    for address in admins.values_list("email", flat=True)[:_MOST_ADDRESSES]:
        try:
            send_mail("attack_notice", to=[address], context=context)
        except Exception as error:  # noqa: BLE001  (a mail server may raise anything; the message may name addresses, so only the type is logged)
            log.warning("a notice of an attack was not mailed", tenant=row.tenant_id, kind=row.kind, failure=type(error).__name__)


def _facts(row: AttackNotice) -> dict[str, Any]:
    since: datetime = row.since or timezone.now()
    if row.kind == AttackNotice.Kind.BLOCKED_ADDRESSES:
        blocks = AddressBlock.objects.of(row.tenant_id).filter(blocked_at__gt=since).order_by("-blocked_at")
        return {"count": blocks[:_MOST_COUNTED].count(), "most": _MOST_COUNTED, "blocks": list(blocks[:_MOST_SHOWN])}
    lines = SignIn.objects.of(row.tenant_id).filter(created_at__gt=since)
    counts = {name: lines.filter(type=code)[:_MOST_COUNTED].count() for code, name in _LEAKS.items()}
    return {**counts, "most": _MOST_COUNTED}


def _link(row: AttackNotice) -> str:
    base = f"{scheme()}://{settings.PLATFORM_HOST}/admin/authapi"
    if row.kind == AttackNotice.Kind.BLOCKED_ADDRESSES:
        return f"{base}/addressblock/"
    return f"{base}/signin/?{urlencode({'type__exact': 'pwd_leak'})}"
