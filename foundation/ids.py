"""Prefixed opaque ids from the system's random source. Pure."""

from __future__ import annotations

import re
import secrets

_ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

TENANT_ID_PATTERN = re.compile(r"[a-z0-9][-a-z0-9]{1,62}[a-z0-9]")
EVENT_ID_PATTERN = re.compile(r"evt_[a-zA-Z0-9]{22}")
STREAM_ID_PATTERN = re.compile(r"est_[a-zA-Z0-9]{22}")


def _random(alphabet: str, length: int) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(length))


def new_connection_id() -> str:
    return "con_" + _random(_ALPHANUMERIC, 16)


def new_custom_domain_id() -> str:
    return "cd_" + _random(_ALPHANUMERIC, 16)


def new_domain_token() -> str:
    """Return the value that a tenant publishes in DNS to prove control over a domain: public, but unique per row."""
    return _random(_ALPHANUMERIC, 43)


def new_event_id() -> str:
    return "evt_" + _random(_BASE58, 22)


def new_stream_id() -> str:
    return "est_" + _random(_BASE58, 22)


def new_factor_id() -> str:
    return "dev_" + _random(_ALPHANUMERIC, 16)


def new_client_grant_id() -> str:
    return "cgr_" + _random(_ALPHANUMERIC, 16)


def new_client_id() -> str:
    return _random(_ALPHANUMERIC, 32)


def new_exchange_profile_id() -> str:
    return "tep_" + _random(_ALPHANUMERIC, 16)


def new_hex_id() -> str:
    """Return 24 hexadecimal digits, the id part of a database user and the id of an API resource."""
    return secrets.token_hex(12)


def is_tenant_id(value: str) -> bool:
    """Tell whether `value` has the tenant pattern and 3 to 63 characters (spec, "Event envelope", `x0tenant`)."""
    return 3 <= len(value) <= 63 and TENANT_ID_PATTERN.fullmatch(value) is not None


def new_role_id() -> str:
    return "rol_" + _random(_ALPHANUMERIC, 16)


def new_organization_id() -> str:
    return "org_" + _random(_ALPHANUMERIC, 16)


def new_group_id() -> str:
    return "grp_" + _random(_BASE58, 22)


def new_job_id() -> str:
    return "job_" + _random(_ALPHANUMERIC, 16)


def new_ticket_id() -> str:
    return "tkt_" + _random(_ALPHANUMERIC, 22)


def new_session_id() -> str:
    return "ses_" + _random(_ALPHANUMERIC, 22)


def new_credential_id() -> str:
    return "cred_" + _random(_BASE58, 22)


def new_refresh_token_id() -> str:
    return "rt_" + _random(_ALPHANUMERIC, 22)


def new_sign_in_id() -> str:
    return "log_" + _random(_ALPHANUMERIC, 22)


def new_staff_factor_id() -> str:
    return "sfa_" + _random(_ALPHANUMERIC, 22)


def new_device_credential_id() -> str:
    return "dcr_" + _random(_ALPHANUMERIC, 16)


def new_invitation_id() -> str:
    return "uinv_" + _random(_ALPHANUMERIC, 16)
