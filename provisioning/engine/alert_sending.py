"""Sends an alert by mail to the admins of its tenant, and to the platform's webhook, signed as Standard Webhooks describes.

Messages contain counts, kinds, times and a link to a page. They never contain parts of a response, user data or secrets.
"""

from __future__ import annotations

import json
import logging
import time
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone
from django.utils.http import urlencode

from events.models import EventStream
from foundation import failpoints
from foundation.outbound.outcomes import OutboundError
from foundation.outbound.session import outbound_session
from foundation.timestamps import wire_time
from identity.hosts import scheme
from identity.mail.sending import send_mail
from identity.models import Staff
from identity.stopped_tenants import of_running_tenants
from provisioning.models import Alert
from provisioning.webhooks.sending import USER_AGENT
from provisioning.webhooks.signature import SecretRefused, signature

logger = logging.getLogger(__name__)

_MOST_ADDRESSES = 50
_WEBHOOK_SECONDS = 5.0
_LIST = "/admin/provisioning/deadletter/"


def send_alert(alert_id: int) -> bool:
    """Send the alert, unless another worker has taken the alert or its tenant is stopped; store failures in the row of the alert.

    The caller must have no open transaction.
    """
    if of_running_tenants(Alert.objects.filter(pk=alert_id, taken_at__isnull=True)).update(taken_at=timezone.now()) != 1:
        return False
    failpoints.reach("alert_taken")
    alert = Alert.objects.get(pk=alert_id)
    stream = EventStream.objects.of(alert.tenant_id).filter(pk=alert.stream_id).first()
    problems = [*_mailed(alert, stream), *_posted(alert)]
    failpoints.reach("alert_sent")
    alert.problem = "; ".join(problems)[:256]
    alert.save(update_fields=["mailed_to", "posted_at", "problem"])
    if problems:
        logger.warning("alert %s was not sent to all recipients: %s", alert.pk, alert.problem)
    return True


def link_of(alert: Alert) -> str:
    """Return the URL, on the platform host, of the page that shows the subject of the alert."""
    base = f"{scheme()}://{settings.PLATFORM_HOST}"
    if alert.kind in (Alert.Kind.HELD, Alert.Kind.NOT_FOUND):
        return f"{base}/admin/events/eventstream/{alert.stream_id}/change/"
    shown = {"state__exact": "open", "stream_id": alert.stream_id, **({"q": alert.fingerprint} if alert.fingerprint else {})}
    return f"{base}{_LIST}?{urlencode(shown)}"


def _mailed(alert: Alert, stream: EventStream | None) -> list[str]:
    """Send one mail per admin, so that a refused email address does not affect other admins. Return the errors that occurred."""
    if not settings.MAIL_IS_CONFIGURED:
        return []
    admins = Staff.objects.filter(tenant_id=alert.tenant_id, is_active=True).order_by("pk")
    context = {"alert": alert, "stream": (stream and stream.name) or alert.stream_id, "link": link_of(alert)}
    problems = []
    for address in admins.values_list("email", flat=True)[:_MOST_ADDRESSES]:
        try:
            send_mail("alert", to=[address], context=context)
        except Exception as error:  # noqa: BLE001  (mail backends raise any type; the text may name addresses, so only the type is kept)
            problems.append(f"a mail failed ({type(error).__name__})")
        else:
            alert.mailed_to += 1
    return problems


def _posted(alert: Alert) -> list[str]:
    url = settings.ALERT_WEBHOOK_URL
    if not url:
        return []
    body = json.dumps(_document(alert), separators=(",", ":")).encode()
    message_id, now = f"alert_{alert.pk}", int(time.time())
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": USER_AGENT, "webhook-id": message_id}
    try:
        if settings.ALERT_WEBHOOK_SECRET:
            signed = signature(settings.ALERT_WEBHOOK_SECRET, message_id=message_id, timestamp=now, body=body)
            headers |= {"webhook-timestamp": str(now), "webhook-signature": signed}
        answer = outbound_session().send("POST", url, headers=headers, body=body, deadline=time.monotonic() + _WEBHOOK_SECONDS)
    except (OutboundError, SecretRefused) as error:
        return [f"the webhook on {urlsplit(url).hostname} is unreachable ({type(error).__name__})"]
    if not 200 <= answer.status < 300:
        return [f"the webhook on {urlsplit(url).hostname} answered {answer.status}"]
    alert.posted_at = timezone.now()
    return []


def _document(alert: Alert) -> dict[str, Any]:
    about = {"tenant": alert.tenant_id, "event_stream_id": alert.stream_id, "kind": alert.kind, "fingerprint": alert.fingerprint}
    return {
        "type": "dead_letter_alert",
        "timestamp": wire_time(alert.created_at),
        "data": {**about, "facts": alert.facts, "link": link_of(alert)},
    }
