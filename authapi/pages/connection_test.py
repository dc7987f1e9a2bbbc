"""The page that ends the test of a connection. What came of it stands in the admin."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse

from authapi.failures import Case, RequestRefused
from authapi.pages.hosted_page import hosted_page
from authapi.upstream.connection_tests import judge_test, waiting_test
from identity.hosts import HostMatch


def finish_test(request: HttpRequest, host: HostMatch, state: str, sent: Mapping[str, str], *, address: str) -> HttpResponse:
    """Judge the provider's answer and say that the test is over. Raises `RequestRefused`."""
    test = waiting_test(host.tenant_id, state)
    if test is None:
        raise RequestRefused(Case.REQUEST_EXPIRED)
    is_success = judge_test(test, sent, address=address)
    return hosted_page(request, host, "connection_test", {"is_success": is_success, "connection": test.connection})
