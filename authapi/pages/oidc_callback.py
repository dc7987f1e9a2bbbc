"""`/login/callback`: the URL to which OpenID and OAuth 2.0 providers redirect the browser, with a code or an error."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase
from authapi.login.browser import post_form, see_other, with_parameters
from authapi.login.cookies import BROWSER, read_cookie
from authapi.login.login import kept_login
from authapi.pages.connection_test import finish_test
from authapi.pages.provider_login import Evidence, answered_request, finish
from authapi.upstream.connection_tests import is_test
from authapi.upstream.login import CALLBACK_PATH, proven
from identity.hosts import HostMatch

# The parameters that the service reads from an answer (OpenID Connect Core 1.0, 3.1.2.5 and 3.1.2.6; RFC 9207, 2).
_MEMBERS = ("code", "state", "iss", "error", "error_description")
# Profile data that a provider posts only with the first answer about a user. Such an answer must not become a URL, because it contains
# personal data.
_USER = "user"
# Marks a form that a page of this service posted again.
POSTED_AGAIN = "posted_again"


def oidc_callback(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Finish a login at a provider, and continue with the client's request. Errors are sent to the client."""
    is_posted = request.method == "POST"
    sent = request.POST if is_posted else request.GET
    members = (*_MEMBERS, _USER) if is_posted else _MEMBERS
    repeated = next((name for name in members if len(sent.getlist(name)) > 1), None)
    if repeated is not None:
        raise RequestRefused(RequestCase.REPEATED_PARAMETER, parameter=repeated)
    answer = {name: str(sent[name]) for name in members if name in sent}
    state = answer.get("state", "")
    if is_test(state):
        return finish_test(request, host, state, answer, address=host.issuer + CALLBACK_PATH)
    if is_posted and _USER not in answer:
        # Browsers may omit the cookie of this service when another site posts a form. After this redirect to the same page, the browser
        # sends the cookie.
        return see_other(request, with_parameters(request.path, answer))
    if is_posted and not read_cookie(request, BROWSER) and POSTED_AGAIN not in request.POST:
        # The answer contains profile data, which must not be in a URL. So instead of a redirect, a page of this service posts the answer
        # again, and the browser sends the cookie.
        return post_form(request, host.issuer + CALLBACK_PATH, {**answer, POSTED_AGAIN: "1"})
    row, asked = answered_request(request, host, state)
    return finish(kept_login(request, host, row), asked.connection_id, Evidence(lambda connection: proven(connection, asked, answer)))
