"""Fields for suspicious IP addresses, breached passwords and new browsers, on the page "Sign-in settings"."""

from __future__ import annotations

from typing import Any

from django import forms

from authapi.accounts.attack_settings import LONGEST_RATE_MS, MOST_ATTEMPTS
from authapi.accounts.leaked_passwords import CHANGE, FREQUENCIES, leak_values
from authapi.accounts.leaked_passwords import SIGN_UP as AT_SIGN_UP
from authapi.accounts.suspicion import EXCHANGE, LOGIN, SIGN_UP, suspicion_values
from authapi.models import TenantSettings
from foundation.admin.line_fields import LinesField
from identity.admin.service_form import ServiceForm
from identity.breaches.current_list import list_status

_STAGES = {
    "login": (LOGIN, "Failed logins"),
    "sign_up": (SIGN_UP, "Sign-ups"),
    "exchange": (EXCHANGE, "Refused token exchanges"),
}
STAGES_IN_WORDS = dict(_STAGES.values())
_SUSPICION_SHIELDS = (
    ("block", "Block: refuse requests from the IP address until it has an attempt again"),
    ("admin_notification", "Notify the administrators: at most one email per hour"),
)
_LOGIN_SHIELDS = (
    ("block", "Block the login: the user must set a new password by email. A user without an email address cannot log in"),
    ("user_notification", "Notify the user: one email for each breached password, with a link to set a new password"),
    ("admin_notification", "Notify the administrators by email"),
)
_STAGE_SHIELDS = (("block", "Refuse the password"), ("admin_notification", "Notify the administrators by email"))
_FREQUENCIES = (
    ("immediately", "Immediately, at most every five minutes"),
    ("daily", "Once a day"),
    ("weekly", "Once a week"),
    ("monthly", "Once a month"),
)
_NEW_DEVICE_MAILS = (
    ("off", "No email"),
    ("own", "An email after a login with a password or a code of this service"),
    ("all", "An email after every login, also with an external provider"),
)
NEW_BROWSERS_TEXT = (
    "If a user logs in with a browser for the first time, the service can email the user. The email contains the time, browser and "
    "country of the login, and a link to set a new password. No email is sent at the first login of an account. After a change of the "
    "password, all browsers are new."
)


def _shields(choices: tuple[tuple[str, str], ...], label: str, help_text: str = "") -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(required=False, choices=choices, widget=forms.CheckboxSelectMultiple, label=label, help_text=help_text)


def _attempts(label: str) -> forms.IntegerField:
    return forms.IntegerField(min_value=1, max_value=MOST_ATTEMPTS, label=f"{label}: attempts that an IP address has")


def _seconds(label: str) -> forms.FloatField:
    return forms.FloatField(
        min_value=0.001,
        max_value=LONGEST_RATE_MS / 1000,
        label=f"{label}: seconds until an IP address gets one more attempt",
        widget=forms.NumberInput(attrs={"step": "any"}),
    )


class AttackFields(ServiceForm):
    suspicion_enabled = forms.BooleanField(
        required=False,
        label="Count attempts of IP addresses",
        help_text="An IP address that has used up its attempts is suspicious: many failed logins or sign-ups may be an attack.",
    )
    suspicion_shields = _shields(_SUSPICION_SHIELDS, "When an IP address has used up its attempts")
    suspicion_allowlist = LinesField(
        label="IP addresses that are never suspicious", help_text="One address or network per line, such as 192.0.2.0/24. At most 100."
    )
    login_attempts, login_seconds = _attempts(_STAGES["login"][1]), _seconds(_STAGES["login"][1])
    sign_up_attempts, sign_up_seconds = _attempts(_STAGES["sign_up"][1]), _seconds(_STAGES["sign_up"][1])
    exchange_attempts, exchange_seconds = _attempts(_STAGES["exchange"][1]), _seconds(_STAGES["exchange"][1])
    leaks_enabled = forms.BooleanField(
        required=False,
        label="Check for breached passwords",
        help_text="Compares passwords with a list of passwords that were stolen from other services. The sign-in log records each match.",
    )
    leak_shields = _shields(_LOGIN_SHIELDS, "At a login with a breached password")
    leak_sign_up_shields = _shields(_STAGE_SHIELDS, "At a sign-up, and when the management interface creates a user")
    leak_change_shields = _shields(_STAGE_SHIELDS, "When a password is changed")
    leak_frequency = forms.ChoiceField(choices=_FREQUENCIES, label="Emails to administrators about breached passwords")
    new_device_mails = forms.ChoiceField(choices=_NEW_DEVICE_MAILS, label="Emails about logins with new browsers")

    def suspicion(self) -> dict[str, Any]:
        """Return the changed settings about suspicious IP addresses."""
        values = self._changed({"enabled": "suspicion_enabled", "shields": "suspicion_shields", "allowlist": "suspicion_allowlist"})
        stages: dict[str, dict[str, int]] = {}
        for name, (stage, _) in _STAGES.items():
            found = self._changed({"max_attempts": f"{name}_attempts", "rate": f"{name}_seconds"})
            if "rate" in found:
                found["rate"] = round(found["rate"] * 1000)
            stages |= {stage: found} if found else {}
        return values | ({"stage": stages} if stages else {})

    def leaks(self) -> dict[str, Any]:
        """Return the changed settings about breached passwords."""
        values = self._changed({"enabled": "leaks_enabled", "shields": "leak_shields", "admin_notification_frequency": "leak_frequency"})
        if "admin_notification_frequency" in values:
            values["admin_notification_frequency"] = [values["admin_notification_frequency"]]
        shields = self._changed({AT_SIGN_UP: "leak_sign_up_shields", CHANGE: "leak_change_shields"})
        return values | ({"stage": {name: {"shields": found} for name, found in shields.items()}} if shields else {})

    def _changed(self, names: dict[str, str]) -> dict[str, Any]:
        return {name: self.cleaned_data[field] for name, field in names.items() if field in self.changed_data}


def attack_values(row: TenantSettings | None) -> dict[str, Any]:
    """Return the values of the form fields of this module from a tenant's settings, including defaults."""
    suspicion, leaks = suspicion_values(row), leak_values(row)
    named = leaks["admin_notification_frequency"] or ["daily"]
    return {
        **{f"suspicion_{name}": suspicion[name] for name in ("enabled", "shields", "allowlist")},
        **{f"{name}_attempts": suspicion["stage"][stage]["max_attempts"] for name, (stage, _) in _STAGES.items()},
        **{f"{name}_seconds": suspicion["stage"][stage]["rate"] / 1000 for name, (stage, _) in _STAGES.items()},
        "leaks_enabled": leaks["enabled"],
        "leak_shields": leaks["shields"],
        "leak_sign_up_shields": leaks["stage"][AT_SIGN_UP]["shields"],
        "leak_change_shields": leaks["stage"][CHANGE]["shields"],
        "leak_frequency": min(named, key=FREQUENCIES.__getitem__),
    }


def attack_fieldsets() -> list[tuple[str, dict[str, Any]]]:
    """Return the sections of the form, with the status of the list of breached passwords."""
    figures = [f"{name}_{part}" for name in _STAGES for part in ("attempts", "seconds")]
    leaks = ["leaks_enabled", "leak_shields", "leak_sign_up_shields", "leak_change_shields", "leak_frequency"]
    return [
        ("Suspicious IP addresses", {"fields": ["suspicion_enabled", "suspicion_shields", "suspicion_allowlist", *figures]}),
        ("Breached passwords", {"fields": leaks, "description": list_status().in_words}),
        ("New browsers", {"fields": ["new_device_mails"], "description": NEW_BROWSERS_TEXT}),
    ]
