"""What people are told about passwords: the policy before they choose one, and why the one they chose is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from identity.passwords import PasswordProblem, Weakness, policy_of, shortest_length


def password_hints(options: Mapping[str, Any]) -> list[str]:
    """Return the policy of a connection as sentences."""
    hints = [_("At least %(count)d characters.") % {"count": shortest_length(options)}]
    policy = policy_of(options)
    if policy == "fair":
        hints.append(_("Lower case and upper case letters, and numbers."))
    elif policy in ("good", "excellent"):
        hints.append(_("Three of these four: lower case letters, upper case letters, numbers, special characters."))
    if policy == "excellent":
        hints.append(_("The same character at most twice in a row."))
    return hints


def refusal_text(problem: PasswordProblem, options: Mapping[str, Any]) -> str:
    """Say why a password is refused, and what would do."""
    texts = {
        Weakness.STRENGTH: _("This password is too weak.") + " " + " ".join(password_hints(options)),
        Weakness.DICTIONARY: _("This password is one that many people use. Choose another one."),
        Weakness.PERSONAL: _("The password contains your name or address. Choose another one."),
        Weakness.HISTORY: _("You have used this password before. Choose another one."),
    }
    return texts[problem.weakness]
