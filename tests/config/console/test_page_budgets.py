"""No page of the admin needs more database queries than its row of `page_budgets.toml` allows, even if its lists have many rows.

`tests/peers/test_admin_console.py` checks the other limit of each row: the kilobytes that a browser loads.
"""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from config.console.admin_site import site
from tests.factories.admin import Rows, browser_of, new_staff, new_tenant
from tests.factories.admin_pages import beyond_budget, every_page, name_of
from tests.factories.filled_tables import fill

# More rows than the budget of any page, so that a query per row exceeds every budget.
_ROWS = 60
_SINGLE = {"identity.tenant", "events.head", "authapi.tenantsettings"}


@pytest.mark.usefixtures("db")
def test_no_page_needs_more_queries_than_its_budget() -> None:
    rows = Rows(new_tenant())
    with transaction.atomic():
        seeds = [rows.of(model) for model, page in site._registry.items() if getattr(page, "tenant_column", None)]
        fill([seed for seed in seeds if seed._meta.label_lower not in _SINGLE], tenants=[rows.tenant], rows=_ROWS)
    operator = browser_of(new_staff(None))
    operator.post(reverse("admin:choose_tenant"), {"tenant": rows.tenant.pk})

    measured = {name_of(address): queries_of(operator, address) for address in every_page(operator, rows)}

    beyond = beyond_budget("queries", measured)
    assert not beyond, "\n".join(beyond)


def queries_of(browser: Client, address: str) -> int:
    """Return the number of queries of a page. The first request, which loads templates and permissions, is not counted."""
    browser.get(address)
    with CaptureQueriesContext(connection) as queries:
        assert browser.get(address, follow=True).status_code == 200, address
    return len(queries)
