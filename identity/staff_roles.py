"""What each role of a staff account may do in the admin: the one table of it. Pure.

A role says what, the tenant of the account says where: without a tenant it holds in every tenant. Permissions have Django's
names, `<app>.<verb>_<model>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

ADMINISTRATOR = "administrator"
PROVISIONING_OPERATOR = "provisioning_operator"
AUDITOR = "auditor"


@dataclass(frozen=True)
class RoleRule:
    """A role in words, and patterns of the permissions it has."""

    label: str
    meaning: str
    permissions: tuple[str, ...]

    def allows(self, permission: str) -> bool:
        """Tell whether a pattern names the permission."""
        return any(fnmatchcase(permission, pattern) for pattern in self.permissions)


ROLES: dict[str, RoleRule] = {
    ADMINISTRATOR: RoleRule("Administrator", "May do everything, staff accounts and their roles included.", ("*",)),
    PROVISIONING_OPERATOR: RoleRule(
        "Provisioning operator",
        "Runs event streams, actions, synchronizations and dead letters. Sees users, connections, jobs and the log, and changes none "
        "of them. Sees neither clients and keys nor staff accounts.",
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
    AUDITOR: RoleRule("Auditor", "Sees everything that an administrator sees, and changes, sends and takes away nothing.", ("*.view_*",)),
}


def is_allowed(role: str, permission: str) -> bool:
    """Tell whether the role has the permission; a role that nobody knows has none."""
    rule = ROLES.get(role)
    return rule is not None and rule.allows(permission)
