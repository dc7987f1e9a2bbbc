"""Sends codes of factors by mail or text message. One job sends one code, and stores the code encrypted until the message is sent."""

from __future__ import annotations

from datetime import datetime

from authapi.factors.kinds import EMAIL
from authapi.models import Client
from identity.languages import language_for
from identity.messages.facts import user_facts
from identity.messages.numbers import NumberRefused
from identity.messages.queue import can_send, queue_message
from identity.models import EnrolledFactor, User
from identity.services.failures import Invalid

_MESSAGES = {"email": "mfa_oob_code", "sms": "mfa_sms"}


class CannotSend(Exception):
    """No sender is configured for this kind of message."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def can_send_to(tenant_id: str, kind: str) -> bool:
    """Tell whether codes can be sent for factors of this kind, a phone or an email address."""
    return can_send(tenant_id, _channel(kind))


def require_sender(tenant_id: str, kind: str) -> None:
    """Raise `CannotSend` if codes cannot be sent for factors of this kind."""
    if not can_send_to(tenant_id, kind):
        raise CannotSend


def queue_code(user: User, factor: EnrolledFactor, code: str, *, client: Client | None, language: str, expires_at: datetime) -> None:
    """Queue a code in the transaction of its challenge. Raises `Invalid` for a phone number of a country to which no messages are sent."""
    channel = _channel(factor.kind)
    try:
        queue_message(
            tenant_id=user.tenant_id,
            kind=_MESSAGES[channel],
            channel=channel,
            recipient=factor.address,
            context={"code": code, "user": user_facts(user)},
            language=language_for(user, user.tenant_id, asked=language),
            expires_at=expires_at,
            application={"name": client.name, "clientID": client.client_id, "client_metadata": client.metadata} if client else None,
        )
    except NumberRefused as refused:
        raise Invalid({"phone_number": [str(refused)]}) from refused


def _channel(kind: str) -> str:
    return "email" if kind == EMAIL else "sms"
