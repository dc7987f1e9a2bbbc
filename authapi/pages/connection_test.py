"""Runs the test of a connection in an administrator's browser: a login at the provider. The admin shows the result."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login import round_trips
from authapi.models import ConnectionTest
from authapi.pages.hosted_page import hosted_page
from authapi.pages.tenant_page import tenant_page
from authapi.upstream.connection_tests import call_of_test, fail_test, judge_test, waiting_test
from authapi.upstream.failures import UpstreamFailed
from identity.hosts import HostMatch


@tenant_page("connection_test", methods=("GET",))
def go_to_provider(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Redirect the browser to the provider, as a login does."""
    state = request.GET.get("state", "")
    test = waiting_test(host.tenant_id, state)
    if test is None:
        raise RequestRefused(LoginCase.REQUEST_EXPIRED)
    try:
        call = call_of_test(test, state)
    except UpstreamFailed as failed:
        fail_test(test, failed)
        return _ended(request, host, test, is_success=False)
    return round_trips.send(request, call)


def finish_test(request: HttpRequest, host: HostMatch, state: str, sent: Mapping[str, str], *, address: str) -> HttpResponse:
    """Check the provider's answer, and show that the test has ended. Raises `RequestRefused`."""
    test = waiting_test(host.tenant_id, state)
    if test is None:
        raise RequestRefused(LoginCase.REQUEST_EXPIRED)
    return _ended(request, host, test, is_success=judge_test(test, sent, address=address))


def _ended(request: HttpRequest, host: HostMatch, test: ConnectionTest, *, is_success: bool) -> HttpResponse:
    return hosted_page(request, host, "connection_test", {"is_success": is_success, "connection": test.connection})
