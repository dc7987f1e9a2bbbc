"""Fields and error texts that the pages of second factors share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from authapi.edge.throttling import Rate
from authapi.factors.challenges import TooManyGuesses
from authapi.factors.kinds import EMAIL, PHONE, RECOVERY_CODE, TOTP
from authapi.factors.limits import TooManyMessages
from authapi.factors.messages import CannotSend
from authapi.pages.form_fields import Field, Problem
from authapi.pages.passwordless import LONGEST_TYPED_CODE, no_sender, too_many_messages


@dataclass(frozen=True)
class Trouble:
    """A problem to show on a page, its HTTP status, and the rate limit that refused the request, if one did."""

    problem: Problem
    status: int
    rate: Rate | None = None


def trouble_of(error: Exception, *, kind: str = "") -> Trouble:
    """Return the problem to show for an error: a refused answer for this kind of factor, or a code that could not be sent."""
    if isinstance(error, TooManyMessages):
        return Trouble(Problem(too_many_messages()), 429, error.rate)
    if isinstance(error, TooManyGuesses):
        return Trouble(Problem(_("There were too many wrong codes. Wait some minutes, then try again.")), 429, error.rate)
    if isinstance(error, CannotSend):
        return Trouble(Problem(no_sender()), 503)
    return Trouble(_wrong(kind), 400)


def _wrong(kind: str) -> Problem:
    if kind == RECOVERY_CODE:
        return Problem(_("This recovery code is wrong or was used already."), "code")
    if kind == TOTP:
        return Problem(_("This code is wrong or was used already. Enter the one that the app shows now."), "code")
    if kind in (PHONE, EMAIL):
        return Problem(_("This code is wrong or has expired. Enter the newest one, or ask for another."), "code")
    return Problem(_("The key was not accepted. Try again, or use another method."))


def code_field(*, is_sent: bool) -> Field:
    """Return the field for a code of six digits, from a message or from an app."""
    hint = _("The 6 digits from the message.") if is_sent else _("The 6 digits that the app shows now.")
    return Field("code", _("Code"), inputmode="numeric", autocomplete="one-time-code", maxlength=LONGEST_TYPED_CODE, hints=(hint,))


def key_words() -> Mapping[str, str]:
    """Return the texts that the script shows if the browser used no key."""
    return {
        "cancelled": _("No key was used: you canceled, it took too long, or this device has none for this page. Try again."),
        "present": _("This key is set up for your account already."),
        "missing": _("This method needs a browser with JavaScript and support for security keys."),
    }
