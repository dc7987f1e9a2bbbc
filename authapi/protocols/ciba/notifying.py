"""Notifies a user of an approval request (CIBA). The user gets a mail with a link, or the tenant's server gets an event with this link."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

from authapi.failures import RequestRefused
from authapi.failures.ciba import CibaCase
from authapi.models import CibaRequest, Client
from authapi.services.notifiers import EMAIL, missing
from authapi.tenant_settings import sign_in_settings
from authapi.tokens.ciba_requests import Begun
from foundation.timestamps import wire_time
from identity.hosts import HostMatch
from identity.languages import language_for
from identity.messages.facts import user_facts
from identity.messages.queue import queue_event, queue_message
from identity.models import Job, User

PATH = "/approve"
PARAMETER = "ticket"
EVENT = "backchannel_authentication.requested"
_MAIL = "async_approval"
# The client setting with the channels by which users of the client may be notified.
_CLIENT_CHANNELS = "async_approval_notification_channels"


def channel_for(client: Client) -> str:
    """Return the channel for requests of this client. Raises `RequestRefused` with the name of the missing setting."""
    notifier = sign_in_settings(client.tenant_id).notifier
    lacking = missing(client.tenant_id)
    if lacking:
        raise RequestRefused(CibaCase.NO_NOTIFIER, reason=lacking)
    if notifier.channel != EMAIL:
        return notifier.channel
    allowed = client.settings.get(_CLIENT_CHANNELS)
    if allowed and EMAIL not in allowed:
        reason = f"The tenant notifies users by e-mail, and {_CLIENT_CHANNELS} of the application leaves email out."
        raise RequestRefused(CibaCase.NO_NOTIFIER, reason=reason)
    return notifier.channel


def check_reachable(channel: str, user: User) -> None:
    """Raise `RequestRefused` if the user has no address for this channel."""
    if channel == EMAIL and not (user.email and user.email_verified):
        # An unverified address may belong to another person.
        raise RequestRefused(CibaCase.NO_NOTIFIER, reason="The account has no verified e-mail address.")


def notify(begun: Begun, host: HostMatch) -> Job:
    """Queue the notification of the user. Call it in the transaction that creates the row."""
    row = begun.row
    # The link names the host of the request, because this host is registered, and the user's browser has its session there.
    link = f"{host.issuer.rstrip('/')}{PATH}?{urlencode({PARAMETER: begun.link})}"
    if row.channel == EMAIL:
        return _mail(row, link)
    target = sign_in_settings(row.tenant_id).notifier.webhook_url
    return queue_event(
        tenant_id=row.tenant_id,
        name=EVENT,
        recipient=urlsplit(target).hostname or "",
        data=_event(row, link, host),
        expires_at=row.expires,
    )


def _mail(row: CibaRequest, link: str) -> Job:
    user, client = row.user, row.application
    return queue_message(
        tenant_id=row.tenant_id,
        kind=_MAIL,
        channel=EMAIL,
        recipient=user.email or "",
        context={
            "url": link,
            "until": row.expires.isoformat(),
            "binding_message": row.binding_message,
            "user": user_facts(user),
            "connection": {"name": user.connection.name},
        },
        language=language_for(user, row.tenant_id, asked=""),
        expires_at=row.expires,
        application={"name": client.name, "clientID": client.client_id, "client_metadata": client.metadata},
    )


def _event(row: CibaRequest, link: str, host: HostMatch) -> dict[str, object]:
    """Return the event for the server of the tenant. The event does not contain the id with which the application polls."""
    user, client = row.user, row.application
    return {
        "type": EVENT,
        "timestamp": wire_time(row.created),
        "data": {
            "issuer": host.issuer,
            "client": {"client_id": client.client_id, "name": client.name},
            "user": {"user_id": user.user_id, "email": user.email or "", "phone_number": user.phone_number or ""},
            "binding_message": row.binding_message,
            "scope": row.scope,
            "audience": row.audience,
            "url": link,
            "expires_at": wire_time(row.expires),
        },
    }
