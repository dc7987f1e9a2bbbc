"""Lists of the admin over many rows: the first page, at some thousand rows and at a million."""

from __future__ import annotations

import secrets
import time
from statistics import median
from typing import Any

from django.db import connection
from django.test import Client
from django.urls import reverse

from identity.models import Tenant
from identity.services.staff import create_staff
from identity.services.tenants import create_tenant

_DELIVERIES = """
INSERT INTO provisioning_delivery (stream_id, tenant_id, key, position, event, event_id, event_type, state, is_written, attempts,
    series_attempts, redeliveries, is_forced, reason, detail, error_class, error_scim_type, error_message, error_fingerprint, settled_at)
SELECT %(stream)s, %(tenant)s, 'user:' || n %% 50000, n, -n - %(from)s, 'evt_' || left(md5(%(tenant)s || n), 22), 'user.updated',
    CASE WHEN n %% 2 = 0 THEN 'delivered' ELSE 'dead' END, n %% 2 = 0, 1, 1, 0, false, 'updated', '{}', '', '', '', '', now()
FROM generate_series(%(from)s::bigint + 1, %(to)s::bigint) n
"""
_LETTERS = """
INSERT INTO provisioning_deadletter (delivery_id, stream_id, tenant_id, key, event_id, event_type, state, reason, error_class,
    error_scim_type, fingerprint, attempts, redelivery_actor, redelivery_reason, redrive, resolution, triage_actor, triage_reason)
SELECT id, stream_id, tenant_id, key, event_id, event_type, 'open', 'refused', 'data', '', md5((id %% 20)::text), 1, '', '', '', '', '', ''
FROM provisioning_delivery WHERE tenant_id = %(tenant)s AND state = 'dead' AND position > %(from)s
"""
_ATTEMPTS = """
INSERT INTO provisioning_attempt (delivery_id, tenant_id, number, trigger, started_at, outcome, error_class, error_scim_type,
    error_message, exchanges, log_lines)
SELECT id, tenant_id, 1, 'scheduled', now(), CASE state WHEN 'dead' THEN 'failed' ELSE 'delivered' END, '', '', '', '[]', '[]'
FROM provisioning_delivery WHERE tenant_id = %(tenant)s AND position > %(from)s
"""
_PAGES = {"deliveries": "provisioning_delivery", "dead letters": "provisioning_deadletter", "attempts": "provisioning_attempt"}
_ROUNDS = 7


def measure_lists(sizes: tuple[int, ...]) -> list[dict[str, float | str]]:
    """Fill the tables to each size in turn; return the median milliseconds of the first page of each list."""
    tenant_id = f"bench-{secrets.token_hex(6)}"
    tenant = create_tenant(tenant_id=tenant_id, name="bench", host=f"{tenant_id}.example.test")
    browser = _browser(tenant)
    results: list[dict[str, float | str]] = []
    filled = 0
    for size in sizes:
        _fill(tenant_id, filled, size)
        filled = size
        for name, model in _PAGES.items():
            results.append({"list": name, "rows": size, "ms": _first_page(browser, reverse(f"admin:{model}_changelist"))})
    return results


def _fill(tenant_id: str, start: int, end: int) -> None:
    values: dict[str, Any] = {"tenant": tenant_id, "stream": f"est_{tenant_id[-12:]}", "from": start, "to": end}
    with connection.cursor() as cursor:
        for statement in (_DELIVERIES, _LETTERS, _ATTEMPTS):
            cursor.execute(statement, values)
        cursor.execute("ANALYZE provisioning_delivery, provisioning_deadletter, provisioning_attempt")


def _first_page(browser: Client, address: str) -> float:
    times = []
    for _ in range(_ROUNDS):
        started = time.monotonic()
        answer = browser.get(address)
        times.append((time.monotonic() - started) * 1000)
        assert answer.status_code == 200, (address, answer.status_code)
    return round(median(times), 1)


def _browser(tenant: Tenant) -> Client:
    staff = create_staff(tenant_id=tenant.pk, email=f"{tenant.pk}@example.test", password=secrets.token_urlsafe(24))
    browser = Client(headers={"host": "localhost"})
    browser.force_login(staff)
    return browser
