"""The settings of a tenant for passwords found in breaches of other services, and the effects on logins, sign-ups and password
changes.

A password is looked up in two cases only: after a login has proven that it is correct, and when it is set. So a client that guesses
passwords does not learn which of its wrong guesses are breached passwords.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from authapi.accounts import attack_notices
from authapi.models import AttackNotice, TenantSettings
from authapi.services import sign_in_log
from foundation.memory.ttl_cache import Remembered
from identity.breaches.current_list import is_in_breach

SIGN_UP, CHANGE = "pre-user-registration", "pre-change-password"
BLOCK, TELL_USER, TELL_ADMINS = "block", "user_notification", "admin_notification"
# The shortest time between two mails to administrators, for each frequency. Even `immediately` has a shortest time, so that one attack
# causes only one mail.
FREQUENCIES = {
    "immediately": timedelta(minutes=5),
    "daily": timedelta(days=1),
    "weekly": timedelta(days=7),
    "monthly": timedelta(days=30),
}
_USUAL_FREQUENCY = "daily"
DEFAULTS: dict[str, Any] = {
    "enabled": False,
    "shields": [],
    "admin_notification_frequency": [],
    "method": "standard",
    "stage": {SIGN_UP: {"shields": []}, CHANGE: {"shields": []}},
}
# Codes of the sign-in log.
LEAKED_AT = {SIGN_UP: "signup_pwd_leak", CHANGE: "reset_pwd_leak"}
LEAKED_AT_LOGIN = "pwd_leak"
IN_WORDS = "The password was found in a breach of another service."


@dataclass(frozen=True)
class LeakRules:
    """The effects of a breached password. An effect, such as `block`, is called a shield in the API.

    `period` is the shortest time between two mails to administrators.
    """

    at_login: frozenset[str]
    at_stage: dict[str, frozenset[str]]
    is_enabled: bool
    period: timedelta


def leak_values(row: TenantSettings | None) -> dict[str, Any]:
    """Return the settings under their API names. Missing settings get their defaults."""
    stored: dict[str, Any] = row.attack_protection.get("breached_password_detection", {}) if row is not None else {}
    stages = {name: {**default, **stored.get("stage", {}).get(name, {})} for name, default in DEFAULTS["stage"].items()}
    return {**DEFAULTS, **stored, "stage": stages}


def leak_rules(tenant_id: str) -> LeakRules:
    """Return the rules of a tenant, which are cached for a second."""
    return remembered_leak_rules.get(tenant_id)


def is_refused(tenant_id: str, password: str, is_new: bool) -> bool:  # noqa: FBT001  (signature of `tenant_rule.Judge`)
    """Tell whether the tenant refuses a new password. `is_new`: the password belongs to a new user."""
    rules = leak_rules(tenant_id)
    return rules.is_enabled and BLOCK in rules.at_stage[SIGN_UP if is_new else CHANGE] and is_in_breach(password)


def note_new_password(tenant_id: str, password: str, stage: str, **line: Any) -> None:
    """If a new password was found in a breach, write a line to the sign-in log. Also notify the administrators, if the tenant has
    configured this.

    `line` has the arguments of `sign_in_log.note`. If the password is refused, call this function outside the transaction that is rolled
    back.
    """
    rules = leak_rules(tenant_id)
    if not rules.is_enabled or not is_in_breach(password):
        return
    shields = rules.at_stage[stage]
    sign_in_log.note(tenant_id=tenant_id, type=LEAKED_AT[stage], is_success=BLOCK not in shields, description=IN_WORDS, **line)
    tell_admins(tenant_id, rules, shields)


def tell_admins(tenant_id: str, rules: LeakRules, shields: Iterable[str]) -> None:
    """Schedule a mail to the administrators if `shields` contains `TELL_ADMINS`."""
    if TELL_ADMINS in shields:
        attack_notices.ask_for_notice(tenant_id, AttackNotice.Kind.LEAKED_PASSWORDS, rules.period)


def _load(tenant_id: str) -> LeakRules:
    values = leak_values(TenantSettings.objects.of(tenant_id).first())
    named = values["admin_notification_frequency"] or [_USUAL_FREQUENCY]
    return LeakRules(
        at_login=frozenset(values["shields"]),
        at_stage={name: frozenset(stage["shields"]) for name, stage in values["stage"].items()},
        is_enabled=values["enabled"],
        period=min(FREQUENCIES[name] for name in named),
    )


remembered_leak_rules: Remembered[str, LeakRules] = Remembered(_load, seconds=1.0)
