"""Log lines of one run: structured, masked, and limited in length and number. Pure."""

from __future__ import annotations

from typing import Any

from provisioning.runs.masking import Mask, one_line

MAX_LINES = 100
MAX_CHARACTERS = 256
_MAX_FIELDS = 16


class RunLog:
    """Collects lines with level, message and fields. Never raises an exception: a log line must not make a delivery fail."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self.lines: list[dict[str, Any]] = []

    def __call__(self, level: str, message: str, **fields: Any) -> None:
        if len(self.lines) < MAX_LINES:
            kept = list(fields.items())[:_MAX_FIELDS]
            self.lines.append(
                {"level": level, "message": self._short(message), "fields": {name: self._field(value) for name, value in kept}}
            )
        elif len(self.lines) == MAX_LINES:
            self.lines.append({"level": "warning", "message": f"only the first {MAX_LINES} lines are kept", "fields": {}})

    def _field(self, value: Any) -> Any:
        return value if value is None or isinstance(value, bool | int | float) else self._short(str(value))

    def _short(self, text: str) -> str:
        return one_line(self._mask.text(text), MAX_CHARACTERS)
