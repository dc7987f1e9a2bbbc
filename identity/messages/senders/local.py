"""Text messages in development: on the console, or as files in a folder."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from django.utils import timezone

from identity.messages.outcomes import ProviderAway
from identity.messages.senders.protocol import TextMessage


class ConsoleSender:
    """Writes messages to standard output, as Django's console backend does with mails."""

    def send(self, message: TextMessage) -> None:
        sys.stdout.write(f"Text message to {message.to}\n{message.body}\n{'-' * 79}\n")
        sys.stdout.flush()


@dataclass(frozen=True)
class FileSender:
    """Writes each message into its own file. Only the system user of the service can read the file, because it may contain a code."""

    directory: str

    def send(self, message: TextMessage) -> None:
        now = timezone.now()
        written = {"to": message.to, "from": message.sender, "body": message.body, "sent_at": now.isoformat()}
        try:
            folder = Path(self.directory)
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = folder / f"{now:%Y%m%d-%H%M%S-%f}-{message.id}.sms.json"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                json.dump(written, file, indent=2, ensure_ascii=False)
        except OSError as error:
            raise ProviderAway(f"The file could not be written: {error.strerror}.") from error
