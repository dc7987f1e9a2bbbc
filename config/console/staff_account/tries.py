"""Limits of attempts at a factor or password, for logged-in sessions and for logins. They cannot be switched off."""

from __future__ import annotations

from authapi.edge.buckets import Bucket
from identity.models import Staff

# Ten attempts at once, then one per ten minutes. At each moment, three of the million possible codes are valid. So a year of guessing
# succeeds with a probability of one in six, and every attempt is logged. An attacker needs the password or a session first.
TRIES = Bucket("staff-proof", 10, 600)
# Challenges are limited, too: each challenge is a row in the session table, and a visitor can request one without a login.
CHALLENGES = Bucket("staff-challenge", 30, 2)
TOO_MANY = "Too many attempts. Wait ten minutes and try again."


def may_try(staff: Staff) -> bool:
    """Count one attempt of the account; return False if there were too many.

    The attempt is counted before the check, so that concurrent attempts cannot exceed the limit.
    """
    return TRIES.takes(staff.email)
