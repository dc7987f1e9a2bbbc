"""Third-party service providers in their own processes, with one JSON line per request and per response."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


class PartnerRefused(Exception):
    """The partner's library refused its input. The text comes from the library."""


@dataclass
class Partner:
    process: subprocess.Popen[str]

    def __call__(self, act: str, **given: Any) -> Any:
        """Send a command to the partner. Raise `PartnerRefused` if the partner refuses it."""
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
