"""Third-party SAML partners in separate processes. The test sends a command, and the driver sends a response. Each command and
each response is one line of JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


class PartnerRefused(Exception):
    """The library of the partner refused its input. The text of the error comes from the library."""


@dataclass
class Partner:
    process: subprocess.Popen[str]

    def __call__(self, act: str, **given: Any) -> Any:
        """Send a command to the partner and return the response. Raise `PartnerRefused` if the partner's library refuses its input."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"act": act, **given}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "The driver has ended."
        answer = json.loads(line)
        if "refused" in answer:
            raise PartnerRefused(answer["refused"])
        return answer["done"]


@contextmanager
def partner(command: list[str], **options: Any) -> Iterator[Partner]:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            yield Partner(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=20)
