"""The SQL statements of one exchange at the token endpoint, without the statements that only fill caches."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from authapi.protocols.oauth.engine import server
from authapi.token_request import TokenRequest
from identity.models import Tenant
from tests.factories.authapi import Registered, host_of

# Each process reads these rows once a second in the background, and requests do not read them.
_REMEMBERED = (
    "authapi_signingkey",
    "identity_customdomain",
    "authapi_tenantsettings",
    "authapi_apiresource",
    "identity_tenant",
)


def statements_of(tenant: Tenant, registered: Registered, form: dict[str, Any]) -> list[str]:
    """Run the token request `form` of an authenticated client. Return the first word of each SQL statement."""
    request = TokenRequest(host=host_of(tenant), address="192.0.2.1", headers={}, form=form)
    with CaptureQueriesContext(connection) as queries:
        server().exchange(request, registered.client)
    texts = [query["sql"] for query in queries.captured_queries]
    return [text.split()[0] for text in texts if text not in ("BEGIN", "COMMIT") and not _is_remembered(text)]


def _is_remembered(text: str) -> bool:
    return any(f'FROM "{table}"' in text for table in _REMEMBERED)
