"""Changes the settings of a tenant for suspicious IP addresses and breached passwords."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db import transaction

from authapi.accounts import leaked_passwords, suspicion
from authapi.accounts.leaked_passwords import BLOCK, TELL_ADMINS, TELL_USER, leak_values, remembered_leak_rules
from authapi.accounts.suspicion import remembered_suspicion, suspicion_values
from authapi.models import TenantSettings
from authapi.services.tenant_settings import allowlist_problems, locked_settings, save_settings
from foundation.database.transactions import unit_of_work
from identity.services.failures import Invalid, NotSupported

SUSPICION_SHIELDS = (BLOCK, TELL_ADMINS)
LOGIN_SHIELDS = (BLOCK, TELL_USER, TELL_ADMINS)
STAGE_SHIELDS = (BLOCK, TELL_ADMINS)
# With more than a million allowed failures, no IP address would ever be suspicious. An interval of more than a month would be a permanent
# block.
MOST_ATTEMPTS = 1_000_000
LONGEST_RATE_MS = 30 * 86_400_000


@unit_of_work
def update_suspicion(*, tenant_id: str, changes: dict[str, Any]) -> TenantSettings:
    """Change the given settings of suspicious IP addresses. All other settings keep their values, even settings of the same stage.

    Raises `Invalid`. The new limits also apply to IP addresses that are already blocked. Their counts of attempts are kept.
    """
    row = locked_settings(tenant_id)
    after = _merged(suspicion_values(row), changes, suspicion.DEFAULTS)
    errors = _unknown(changes, suspicion.DEFAULTS) | _shield_problems("shields", after["shields"], SUSPICION_SHIELDS)
    errors |= allowlist_problems(after["allowlist"])
    for name, stage in after["stage"].items():
        if not 1 <= stage["max_attempts"] <= MOST_ATTEMPTS:
            errors[f"stage.{name}.max_attempts"] = [f"1 to {MOST_ATTEMPTS}."]
        if not 1 <= stage["rate"] <= LONGEST_RATE_MS:
            errors[f"stage.{name}.rate"] = [f"1 to {LONGEST_RATE_MS} milliseconds."]
    return _saved(row, "suspicious_ip_throttling", after, errors, partial(remembered_suspicion.forget, tenant_id))


@unit_of_work
def update_leak_rules(*, tenant_id: str, changes: dict[str, Any]) -> TenantSettings:
    """Change the given settings of breached passwords.

    All other settings keep their values, even settings of the same stage (such as sign-up). Raises `Invalid`, and `NotSupported` if
    `method` is `enhanced`: the service uses only the list of the operator.
    """
    if changes.get("method", "standard") != "standard":
        raise NotSupported("Not supported: breached passwords are looked up only in the list of the operator (method standard).")
    row = locked_settings(tenant_id)
    after = _merged(leak_values(row), changes, leaked_passwords.DEFAULTS)
    errors = _unknown(changes, leaked_passwords.DEFAULTS) | _shield_problems("shields", after["shields"], LOGIN_SHIELDS)
    for name, stage in after["stage"].items():
        errors |= _shield_problems(f"stage.{name}.shields", stage["shields"], STAGE_SHIELDS)
    if set(after["admin_notification_frequency"]) - set(leaked_passwords.FREQUENCIES):
        errors["admin_notification_frequency"] = [f"Some of {', '.join(leaked_passwords.FREQUENCIES)}."]
    return _saved(row, "breached_password_detection", after, errors, partial(remembered_leak_rules.forget, tenant_id))


def _merged(before: dict[str, Any], changes: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the settings after a change. Stages and members of stages that are not in the change keep their values."""
    sent: dict[str, Any] = changes.get("stage") or {}
    stages = {name: {**stage, **(sent.get(name) or {})} for name, stage in before["stage"].items()}
    return {name: value for name, value in {**before, **changes, "stage": stages}.items() if name in defaults}


def _unknown(changes: dict[str, Any], defaults: dict[str, Any]) -> dict[str, list[str]]:
    stages = {f"stage.{name}": ["Unknown stage."] for name in changes.get("stage") or {} if name not in defaults["stage"]}
    return stages | {name: ["Unknown setting."] for name in changes if name not in defaults}


def _shield_problems(name: str, shields: list[str], known: tuple[str, ...]) -> dict[str, list[str]]:
    return {name: [f"Some of {', '.join(known)}."]} if set(shields) - set(known) else {}


def _saved(row: TenantSettings, name: str, values: dict[str, Any], errors: dict[str, list[str]], forget: partial[None]) -> TenantSettings:
    if errors:
        raise Invalid(errors)
    row.attack_protection = {**row.attack_protection, name: values}
    save_settings(row, "attack_protection")
    transaction.on_commit(forget, robust=True)
    return row
