"""The section with the recent activity of the account, from the sign-in log."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils.translation import gettext_lazy as _

from authapi.models import SignIn
from authapi.protocols.account.browser_words import browser_in_words
from authapi.protocols.account.visit import Visit
from identity.languages import written_time

_MOST_LINES = 50
# The types of lines of the sign-in log that users recognize. Exchanges of codes and tokens by applications are left out.
_WORDS = {
    "s": _("Logged in"),
    "f": _("Login refused"),
    "fp": _("Wrong password"),
    "limit_wc": _("Login refused: too many wrong passwords"),
    "limit_sul": _("Login refused: too many logins"),
    "slo": _("Logged out"),
    "ss": _("Account created"),
    "sv": _("Email address confirmed"),
    "sce": _("Email address changed"),
    "scpr": _("Link for a new password requested"),
    "scp": _("Password changed"),
    "fcp": _("Password not changed: wrong current password"),
    "ublkdu": _("Account unblocked"),
    "gd_auth_succeed": _("Second step passed"),
    "gd_auth_failed": _("Second step failed"),
    "gd_recovery_succeed": _("Recovery code used"),
    "gd_unenroll": _("Second step or passkey removed"),
    "sede": _("Device connected"),
    "fdecc": _("Device refused"),
}


def view(visit: Visit) -> HttpResponse:
    """Show the newest lines of the user in the sign-in log. The page has no form."""
    found = SignIn.objects.of(visit.host.tenant_id).filter(user_id=visit.user.user_id, type__in=list(_WORDS))
    lines = [
        {
            "text": _WORDS[line.type],
            "is_success": line.is_success,
            "application": "" if line.client_id == visit.client.client_id else line.client_name,
            "browser": browser_in_words(line.user_agent),
            "place": line.ip or "",
            "at": written_time(line.created_at),
        }
        for line in found.order_by("-created_at", "-id")[:_MOST_LINES]
    ]
    return visit.show("activity", {"lines": lines})
