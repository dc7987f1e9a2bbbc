"""Texts about passwords: hints that describe the policy, and the reasons why a password is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from identity.passwords import PasswordProblem, Weakness, policy_of, shortest_length


def password_hints(options: Mapping[str, Any]) -> list[str]:
    """Return the policy of a connection as sentences."""
    shortest = shortest_length(options)
    hints = [ngettext("At least %(count)d character.", "At least %(count)d characters.", shortest) % {"count": shortest}]
    policy = policy_of(options)
    if policy == "fair":
        hints.append(_("Lowercase letters, uppercase letters and numbers."))
    elif policy in ("good", "excellent"):
        hints.append(_("At least three of these: lowercase letters, uppercase letters, numbers, special characters."))
    if policy == "excellent":
        hints.append(_("No character more than twice in a row."))
    return hints


def refusal_text(problem: PasswordProblem) -> str:
    """Return why a password is refused. The text does not repeat the policy, because the page shows the policy as hints at the field."""
    texts = {
        Weakness.STRENGTH: _("This password is too weak. Follow the rules at the field."),
        Weakness.DICTIONARY: _("This password is too common. Choose another one."),
        Weakness.PERSONAL: _("The password contains your name or address. Choose another one."),
        Weakness.BREACHED: _("This password appeared in a data leak elsewhere. Choose another one."),
        Weakness.HISTORY: _("You have used this password before. Choose another one."),
    }
    return texts[problem.weakness]
