"""Whether a tenant refuses a new password that was found in a breach. What tenants decide is above this app, and answers here."""

from __future__ import annotations

from collections.abc import Callable

# Is asked with the id of the tenant, the password, and whether it is that of a new user.
Judge = Callable[[str, str, bool], bool]

_judge: Judge | None = None


def let_tenants_refuse(judge: Judge) -> None:
    """Let `judge` decide from now on."""
    global _judge
    _judge = judge


def is_refused(tenant_id: str, password: str, *, is_new: bool) -> bool:
    """Tell whether the tenant refuses this password; `is_new` for that of a new user."""
    return _judge is not None and _judge(tenant_id, password, is_new)
