"""Messages to users. The service writes them into a folder, as it does with `make up`, and tests read them from the folder."""

from __future__ import annotations

import json
import re
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import authapi.tasks  # noqa: F401 (the worker imports it too, to register the jobs)
from config.settings.email_url import email_settings
from config.settings.sms_url import sms_settings
from identity.models import Job
from identity.services.jobs import run_job

_WAITING = (Job.Status.PENDING,)
_CODE = re.compile(r"(?<![\w#&])\d{6}(?!\w)")
_LINK = re.compile(r"https?://[^\s\"<>]+/u/passwordless/link\?ticket=[\w-]+")


class Outbox:
    """A folder with mails and text messages. No worker runs: the methods of this class run the jobs that send the messages."""

    def __init__(self, folder: Path, settings: Any, *, tenant_id: str) -> None:
        self._folder = folder
        self._tenant_id = tenant_id
        for name, value in email_settings(f"file:{folder}", sender="service@example.test").items():
            setattr(settings, name, value)
        settings.SMS_SENDER = sms_settings(f"file:{folder}")

    @property
    def urls(self) -> dict[str, str]:
        """Return the environment variables with which a web process sends its messages to the folder."""
        return {"EMAIL_URL": f"file:{self._folder}", "SMS_URL": f"file:{self._folder}"}

    def deliver(self) -> None:
        """Run the waiting jobs of the tenant, and then the jobs that these jobs have queued."""
        for _ in range(2):
            waiting = Job.objects.of(self._tenant_id).filter(status__in=_WAITING).order_by("created_at", "pk")
            for key in list(waiting.values_list("pk", flat=True)):
                run_job(key)

    def mails(self) -> list[EmailMessage]:
        """Return every mail in the folder, the oldest mail first."""
        files = sorted(self._folder.glob("*.log"), key=lambda file: file.stat().st_mtime_ns)
        texts = [part for file in files for part in re.split(rb"(?m)^-{79}\n", file.read_bytes()) if part.strip()]
        return [message_from_bytes(text, policy=policy.default) for text in texts]

    def texts(self) -> list[dict[str, str]]:
        """Return every text message in the folder, the oldest message first."""
        return [json.loads(file.read_text()) for file in sorted(self._folder.glob("*.sms.json"))]

    def mailed_code(self, address: str) -> str:
        """Return the code in the newest mail to an address."""
        return str(_CODE.findall(self._mailed(address))[0])

    def mailed_link(self, address: str) -> str:
        """Return the link in the newest mail to an address."""
        return str(_LINK.findall(self._mailed(address))[0])

    def texted_code(self, number: str) -> str:
        """Return the code in the newest text message to a number."""
        self.deliver()
        return str(_CODE.findall([text["body"] for text in self.texts() if text["to"] == number][-1])[0])

    def _mailed(self, address: str) -> str:
        self.deliver()
        plain = [mail.get_body(("plain",)) for mail in self.mails() if mail["To"] == address]
        assert plain, f"nothing was mailed to {address}"
        assert plain[-1] is not None
        return str(plain[-1].get_content())
