"""Text messages through Twilio's API: a form to `Messages.json`, basic authentication, errors by code."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote, urlencode

from foundation.outbound.outcomes import Answer
from identity.messages.outcomes import InDoubt, MessageRefused, ProviderAway
from identity.messages.senders.posting import post
from identity.messages.senders.protocol import TextMessage

DEFAULT_BASE = "https://api.twilio.com"
_SUCCESS, _REDIRECT, _SERVER_ERROR = 200, 300, 500
# Temporary errors in Twilio's error dictionary. All other errors below status 500 concern this message or this account, so the message
# counts as refused.
_LATER = {
    14107: "Twilio limits the rate of this sender.",
    20429: "Twilio limits the rate of this account.",
    21611: "The queue of this sender is full.",
    30001: "The queue of Twilio is full.",
    63038: "The account has reached its limit of messages for today.",
}
_SAID = {
    20003: "Twilio refuses the account SID or the token.",
    20404: "Twilio has no such account.",
    21211: "Twilio refuses the number as invalid.",
    21212: "Twilio refuses the sender as invalid.",
    21408: "The account of Twilio may not send to this country.",
    21606: "The sender is not a number of this account that can send to this recipient.",
    21608: "The trial account of Twilio sends to verified numbers only.",
    21610: "The recipient has answered STOP to this sender.",
    21612: "Twilio cannot send from this sender to this number.",
    21614: "The number cannot receive text messages.",
    21617: "The message is too long for Twilio.",
    21660: "The sender belongs to another account of Twilio.",
    21701: "Twilio has no such messaging service.",
    21703: "The messaging service has no sender.",
    21705: "Twilio refuses the SID of the messaging service as invalid.",
}


@dataclass(frozen=True)
class TwilioSender:
    """Sends from a number or name (`sender`), or through a messaging service."""

    account_sid: str
    token: str = field(repr=False)
    sender: str = ""
    messaging_service_sid: str = ""
    base_url: str = DEFAULT_BASE

    def send(self, message: TextMessage) -> None:
        form = {"To": message.to, "Body": message.body}
        if self.messaging_service_sid:
            form["MessagingServiceSid"] = self.messaging_service_sid
        elif message.sender or self.sender:
            form["From"] = message.sender or self.sender
        else:
            raise MessageRefused("The settings for Twilio name neither a sender nor a messaging service.")
        credentials = base64.b64encode(f"{self.account_sid}:{self.token}".encode()).decode()
        headers = {
            "Authorization": f"Basic {credentials}",
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
        }
        url = f"{self.base_url.rstrip('/')}/2010-04-01/Accounts/{quote(self.account_sid, safe='')}/Messages.json"
        answer = post(url, headers=headers, body=urlencode(form).encode())
        if not _SUCCESS <= answer.status < _REDIRECT:
            raise _failure(answer)


def _failure(answer: Answer) -> Exception:
    """Map a response to an outcome. Drops the text of the response, which quotes the number."""
    code = _code(answer.body)
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS or code in _LATER:
        return ProviderAway(_LATER.get(code, "Twilio limits the rate of this account."))
    if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
        return ProviderAway("Twilio is not available.")
    if answer.status >= _SERVER_ERROR:
        return InDoubt(f"Twilio answers {answer.status}.")
    named = f" (code {code})" if code else f" (status {answer.status})"
    return MessageRefused(_SAID.get(code, "Twilio refuses the message.") + named)


def _code(body: bytes) -> int:
    try:
        found = json.loads(body)
    except ValueError:
        return 0
    code = found.get("code") if isinstance(found, dict) else None
    return code if isinstance(code, int) else 0
