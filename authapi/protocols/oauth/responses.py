"""Sends an answer to the client: in the query, in the fragment, as a posted form, or as a message to the opener."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.clickjacking import xframe_options_exempt

from authapi.login.browser import post_form, see_other, with_parameters
from authapi.protocols.oauth.authorization_request import Target

# The page with the message may load scripts, style sheets and pictures of this host, and nothing else.
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; "


def respond(
    request: HttpRequest, target: Target, members: Mapping[str, Any], *, issuer: str = "", keeps_opener: bool = False
) -> HttpResponse:
    """Send `members` and the state to the client. If `issuer` is set, the answer contains it as `iss` (RFC 9207).

    With `keeps_opener`, the response has `Cross-Origin-Opener-Policy: unsafe-none`, so that the window stays connected to the application
    that opened it. A redirect also needs this header: without it, the browser would disconnect the window.
    """
    sent = {name: value if isinstance(value, str) else json.dumps(value) for name, value in members.items()}
    if target.state is not None:
        sent["state"] = target.state
    if issuer:
        sent["iss"] = issuer
    match target.mode:
        case "form_post":
            # Form Post Response Mode 1.0.
            answer = post_form(request, target.redirect_uri, sent)
        case "web_message":
            # A script reads this answer as JSON, so numbers are not converted to text.
            answer = _web_message(request, target, {**sent, **members})
        case _:
            answer = see_other(request, with_parameters(target.redirect_uri, sent, in_fragment=target.mode == "fragment"))
    answer["Cache-Control"] = "no-store"
    answer["Pragma"] = "no-cache"
    # The URL of the current page may contain a state or a hint, so the browser must not send this URL to the client.
    answer["Referrer-Policy"] = "no-referrer"
    if keeps_opener:
        answer["Cross-Origin-Opener-Policy"] = "unsafe-none"
    return answer


@xframe_options_exempt
def _web_message(request: HttpRequest, target: Target, sent: Mapping[str, Any]) -> HttpResponse:
    """Return a page that posts the answer to its opener or parent window, if that window has the registered origin."""
    message = {"type": "authorization_response", "response": dict(sent)}
    answer = render(request, "hosted/web_message.html", {"message": json.dumps(message), "origin": target.web_origin})
    answer["Content-Security-Policy"] = _POLICY + f"form-action 'none'; frame-ancestors {target.web_origin}"
    # The window that gets the message has another origin. The default policy `same-origin` would disconnect that window from this page.
    answer["Cross-Origin-Opener-Policy"] = "unsafe-none"
    return answer
