"""Reads the options of a passwordless connection, with defaults for missing options. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Defaults of the upstream system: codes with six digits that are valid for three minutes.
LENGTH, SECONDS = 6, 180
# Codes with fewer digits than the minimum are easy to guess. A lifetime above the maximum gives an attacker more guesses, and users rarely
# need more time.
SHORTEST_LENGTH, LONGEST_LENGTH = 6, 10
SHORTEST_SECONDS, LONGEST_SECONDS = 60, 900


@dataclass(frozen=True)
class PasswordlessOptions:
    """The options of a passwordless connection: valid, and with a default for each missing option."""

    length: int
    seconds: int
    takes_sign_ups: bool
    limits_guesses: bool


def read_options(options: Mapping[str, Any]) -> PasswordlessOptions:
    """Return the options. An invalid value, which an older version may have stored, is replaced by the default."""
    passcode = _object(options.get("totp"))
    return PasswordlessOptions(
        length=_within(passcode.get("length"), SHORTEST_LENGTH, LONGEST_LENGTH, LENGTH),
        seconds=_within(passcode.get("time_step"), SHORTEST_SECONDS, LONGEST_SECONDS, SECONDS),
        takes_sign_ups=not options.get("disable_signup"),
        limits_guesses=options.get("brute_force_protection") is not False,
    )


def passwordless_problem(strategy: str, options: Mapping[str, Any]) -> str | None:
    """Return an error text if the service does not support the options of an `email` or `sms` connection, otherwise None."""
    passcode = options.get("totp")
    if passcode is not None and not isinstance(passcode, Mapping):
        return "totp must be an object with length and time_step."
    problem = _passcode_problem(_object(passcode))
    if problem or strategy != "sms":
        return problem
    if options.get("provider") not in (None, "twilio", "sms_gateway"):
        return "provider must be twilio or sms_gateway."
    return None


def _passcode_problem(passcode: Mapping[str, Any]) -> str | None:
    bounds = {"length": (SHORTEST_LENGTH, LONGEST_LENGTH), "time_step": (SHORTEST_SECONDS, LONGEST_SECONDS)}
    for name, (least, most) in bounds.items():
        value = passcode.get(name)
        if value is not None and not (_is_number(value) and least <= value <= most):
            return f"totp.{name} must be a number from {least} to {most}."
    return None


def _within(value: Any, least: int, most: int, default: int) -> int:
    return value if _is_number(value) and least <= value <= most else default


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
