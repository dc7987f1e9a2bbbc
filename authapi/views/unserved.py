"""URLs without an endpoint: scripts and clients get a JSON error that any origin may read, users get a page."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse, JsonResponse

from authapi.failures.requests import RequestCase
from authapi.views import cors

_METHODS = ("GET", "POST")


def is_navigation(headers: Mapping[str, str]) -> bool:
    """Tell whether a browser follows a link or sends a form, so that a user reads the answer.

    Current browsers state this in Fetch Metadata headers. For other browsers, `Accept` must contain HTML.
    """
    mode = headers.get("Sec-Fetch-Mode")
    return mode == "navigate" if mode else "text/html" in headers.get("Accept", "")


def unserved(request: HttpRequest) -> HttpResponse:
    """Answer a script or a client. A preflight gets CORS headers. Any other request gets 404, with an error object and CORS headers.

    `config.server.rates` has charged the IP address of the sender, and adds the rate headers.
    """
    if request.method == "OPTIONS":
        return HttpResponse(status=204, headers=cors.preflight_headers(_METHODS))
    failure = RequestCase.UNSERVED.failure
    answer = JsonResponse({"error": failure.error, "error_description": failure.description}, status=failure.status)
    for name, value in {**cors.answer_headers(), "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}.items():
        answer[name] = value
    return answer
