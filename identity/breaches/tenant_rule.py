"""Tells whether a tenant refuses a breached new password. Another app, which has the settings of tenants, supplies the rule."""

from __future__ import annotations

from collections.abc import Callable

# A function of the id of the tenant, the password, and whether the user is new. It returns whether the tenant refuses the password.
Judge = Callable[[str, str, bool], bool]

_judge: Judge | None = None


def let_tenants_refuse(judge: Judge) -> None:
    """Register `judge`, which decides for all tenants."""
    global _judge
    _judge = judge


def is_refused(tenant_id: str, password: str, *, is_new: bool) -> bool:
    """Tell whether the tenant refuses this password; `is_new` says that the user is new."""
    return _judge is not None and _judge(tenant_id, password, is_new)
