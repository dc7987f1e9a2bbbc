"""How often a factor or a password may be tried in a session or a sign-in: the same for all of them, and never switched off."""

from __future__ import annotations

from authapi.edge.buckets import Bucket
from identity.models import Staff

# Ten at once, then one in ten minutes: at three codes of a million that count at a time, a year of guessing finds one with a
# chance of one in six, and every guess is logged. Whoever gets here has the password already, or a session.
TRIES = Bucket("staff-proof", 10, 600)
# Challenges for passkeys are given to visitors, and each is a row of the sessions' table.
CHALLENGES = Bucket("staff-challenge", 30, 2)
TOO_MANY = "Too many attempts. Wait ten minutes and try again."


def may_try(staff: Staff) -> bool:
    """Count one attempt of the account; False when there were too many. Counted before it is judged, so a burst gains nothing."""
    return TRIES.takes(staff.email)
