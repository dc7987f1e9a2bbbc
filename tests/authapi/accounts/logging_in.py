"""Helpers that try to log in, for the login tests."""

from __future__ import annotations

from typing import Any

from authapi.accounts.attempts import Attempt, LoginRefused, Refusal
from authapi.accounts.password_login import log_in
from authapi.accounts.suspicion import remembered_suspicion
from authapi.models import SignIn, TenantSettings
from authapi.tenant_settings import remembered_settings
from identity.models import Connection, User
from tests.factories.sign_in import PASSWORD

WRONG = "Not-The-Password-1"


def attempt(connection: Connection, identifier: str = "ada@example.test", password: str = PASSWORD, **more: Any) -> Attempt:
    fields = {"ip": "192.0.2.7", "user_agent": "Test/1.0", **more}
    return Attempt(tenant_id=connection.tenant_id, connection=connection, identifier=identifier, password=password, **fields)


def outcome(tried: Attempt) -> User | Refusal:
    """Return the user who is logged in, or the reason for the refusal."""
    try:
        return log_in(tried)
    except LoginRefused as refused:
        return refused.reason


def protect(tenant_id: str, **values: Any) -> None:
    """Change settings of the brute-force protection, and empty the process's cache of these settings."""
    protect_against("brute_force_protection", tenant_id, values)


def suspect(tenant_id: str, **values: Any) -> None:
    """Change settings of the throttling of suspicious IP addresses, and empty the process's cache of these settings."""
    protect_against("suspicious_ip_throttling", tenant_id, values)


def protect_against(name: str, tenant_id: str, values: dict[str, Any]) -> None:
    row, _ = TenantSettings.objects.of(tenant_id).get_or_create(tenant_id=tenant_id)
    row.attack_protection = {**row.attack_protection, name: values}
    row.save()
    remembered_settings.clear()
    remembered_suspicion.clear()


def last_line(tenant_id: str) -> SignIn:
    return SignIn.objects.of(tenant_id).order_by("-created_at", "-pk")[0]
