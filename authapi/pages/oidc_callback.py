"""`/login/callback`: where OpenID providers send the browser back to, with a code or with a refusal."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase
from authapi.login.browser import see_other, with_parameters
from authapi.login.login import kept_login
from authapi.pages.provider_login import Evidence, answered_request, finish
from authapi.upstream.login import proven
from identity.hosts import HostMatch

# What of an answer has a meaning here (OpenID Connect Core 1.0, 3.1.2.5 and 3.1.2.6; RFC 9207, 2).
_MEMBERS = ("code", "state", "iss", "error", "error_description")


def oidc_callback(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Finish a login elsewhere and go on with the client's request, which is told where it fails."""
    sent = request.POST if request.method == "POST" else request.GET
    repeated = next((name for name in _MEMBERS if len(sent.getlist(name)) > 1), None)
    if repeated is not None:
        raise RequestRefused(RequestCase.REPEATED_PARAMETER, parameter=repeated)
    answer = {name: sent[name] for name in _MEMBERS if name in sent}
    if request.method == "POST":
        # The cookie may not travel with a form that another site posts; it does with the navigation that follows.
        return see_other(request, with_parameters(request.path, answer))
    row, asked = answered_request(request, host, answer.get("state", ""))
    return finish(kept_login(request, host, row), asked.connection_id, Evidence(lambda connection: proven(connection, asked, answer)))
