"""The password policy of a connection as a list of rules, each with its result for one password. Pure.

Client libraries show the list to users unchanged, so the codes and texts must stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from identity.passwords import policy_of, shortest_length

_KINDS = (
    ("lowerCase", "lower case letters (a-z)", r"[a-z]"),
    ("upperCase", "upper case letters (A-Z)", r"[A-Z]"),
    ("numbers", "numbers (i.e. 0-9)", r"[0-9]"),
    ("specialCharacters", "special characters (e.g. !@#$%^&*)", r"[^a-zA-Z0-9]"),
)


def rules_of(options: Mapping[str, Any], password: str) -> list[dict[str, Any]]:
    """Return every rule of the policy, and whether the password meets it."""
    policy, shortest = policy_of(options), shortest_length(options)
    rules: list[dict[str, Any]] = [
        {
            "message": "At least %d characters in length",
            "format": [shortest],
            "code": "lengthAtLeast",
            "verified": len(password) >= shortest,
        }
    ]
    items = [{"message": text, "code": code, "verified": bool(re.search(pattern, password))} for code, text, pattern in _KINDS]
    if policy == "fair":
        rules.append({"message": "Should contain:", "code": "shouldContain", "items": items[:3], "verified": _all(items[:3])})
    elif policy in ("good", "excellent"):
        enough = sum(bool(item["verified"]) for item in items) >= 3
        message = "Contain at least %d of the following %d types of characters:"
        rules.append({"message": message, "code": "containsAtLeast", "format": [3, 4], "items": items, "verified": enough})
    if policy == "excellent":
        message = 'No more than %d identical characters in a row (e.g., "%s" not allowed)'
        kept = re.search(r"(.)\1\1", password, re.DOTALL) is None
        rules.append({"message": message, "code": "identicalChars", "format": [2, "aaa"], "verified": kept})
    return rules


def as_text(rules: list[dict[str, Any]]) -> str:
    """Return the rules as lines of text."""
    lines = []
    for rule in rules:
        lines.append("* " + rule["message"] % tuple(rule.get("format", ())))
        lines += [f" * {item['message']}" for item in rule.get("items", ())]
    return "\n".join(lines)


def _all(items: list[dict[str, Any]]) -> bool:
    return all(item["verified"] for item in items)
