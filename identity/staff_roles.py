"""The permissions of each role of staff accounts in the admin. Pure.

The role of an account determines its permissions. The tenant of the account determines where they apply: without a tenant, everywhere.
Permissions have Django's names, `<app>.<verb>_<model>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

ADMINISTRATOR = "administrator"
PROVISIONING_OPERATOR = "provisioning_operator"
AUDITOR = "auditor"


@dataclass(frozen=True)
class RoleRule:
    """A role with its name, its description, and patterns of its permissions."""

    label: str
    meaning: str
    permissions: tuple[str, ...]

    def allows(self, permission: str) -> bool:
        """Tell whether one of the patterns matches the permission."""
        return any(fnmatchcase(permission, pattern) for pattern in self.permissions)


ROLES: dict[str, RoleRule] = {
    ADMINISTRATOR: RoleRule("Administrator", "Has all permissions, including staff accounts and their roles.", ("*",)),
    PROVISIONING_OPERATOR: RoleRule(
        "Provisioning operator",
        "Manages event streams and actions, starts synchronizations, and handles dead letters. Sees users, groups, roles, organizations, "
        "connections, jobs and the event log without changing them. Sees no clients, keys or staff accounts.",
        (
            "provisioning.*",
            "events.*_eventstream",
            "events.view_*",
            *(
                f"identity.view_{model}"
                for model in ("user", "linkedidentity", "connection", "group", "role", "organization", "job", "joberror", "jobchunk")
            ),
        ),
    ),
    AUDITOR: RoleRule("Auditor", "Sees everything that an administrator sees. Cannot change, send or delete anything.", ("*.view_*",)),
}


def is_allowed(role: str, permission: str) -> bool:
    """Tell whether the role has the permission. An unknown role has none."""
    rule = ROLES.get(role)
    return rule is not None and rule.allows(permission)
