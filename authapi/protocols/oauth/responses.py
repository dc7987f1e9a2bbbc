"""How an answer travels to the client: in the query, in the fragment, as a posted form, or as a message to the opener."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.encoding import iri_to_uri
from django.views.decorators.clickjacking import xframe_options_exempt

from authapi.protocols.oauth.authorization_request import Target

# The two pages that carry an answer load one file of ours each, and nothing else.
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; "


def respond(request: HttpRequest, target: Target, members: Mapping[str, Any], *, issuer: str = "") -> HttpResponse:
    """Send `members` and the state to the client. With an `issuer` the answer says whose it is (RFC 9207)."""
    sent = {name: value if isinstance(value, str) else str(value) for name, value in members.items()}
    if target.state is not None:
        sent["state"] = target.state
    if issuer:
        sent["iss"] = issuer
    match target.mode:
        case "form_post":
            answer = _form_post(request, target, sent)
        case "web_message":
            # A script reads this one, and wants numbers to be numbers.
            answer = _web_message(request, target, {**sent, **members})
        case _:
            answer = see_other(request, with_parameters(target.redirect_uri, sent, in_fragment=target.mode == "fragment"))
    answer["Cache-Control"] = "no-store"
    answer["Pragma"] = "no-cache"
    # The address that the browser comes from may hold a state or a hint.
    answer["Referrer-Policy"] = "no-referrer"
    return answer


def see_other(request: HttpRequest, address: str) -> HttpResponse:
    """Redirect to any scheme, native applications' own included: the address is registered.

    After a POST it is 303, so that no browser sends a password on (RFC 9700, 4.12).
    """
    return HttpResponse(status=303 if request.method == "POST" else 302, headers={"Location": iri_to_uri(address)})


def with_parameters(address: str, parameters: Mapping[str, str], *, in_fragment: bool = False) -> str:
    """Return the address with parameters added; query and fragment that it has already stay (RFC 6749, 3.1.2)."""
    if not parameters:
        return address
    if in_fragment:
        return f"{address}#{urlencode(parameters)}"
    before, mark, fragment = address.partition("#")
    separator = "&" if urlsplit(before).query else "?"
    return f"{before.removesuffix('?')}{separator}{urlencode(parameters)}{mark}{fragment}"


def form_target(target: Target) -> str:
    """Return what a content policy must name so that the answer of a form may redirect to the client.

    Browsers hold every redirect that follows a form against the policy, and clients often redirect once more: any https
    address is allowed, and of others the one that is registered.
    """
    parts = urlsplit(target.redirect_uri)
    if parts.scheme == "https":
        return "https:"
    # What stands in a policy must not be able to end a directive.
    safe = parts.netloc.replace(";", "").replace(",", "")
    return f"https: http://{safe}" if parts.scheme == "http" else f"https: {parts.scheme}:"


def _form_post(request: HttpRequest, target: Target, sent: Mapping[str, str]) -> HttpResponse:
    """Return a page whose form posts itself; without script it has a button (Form Post Response Mode 1.0)."""
    answer = render(request, "hosted/form_post.html", {"action": target.redirect_uri, "fields": sent})
    answer["Content-Security-Policy"] = _POLICY + f"form-action {form_target(target)}; frame-ancestors 'none'"
    return answer


@xframe_options_exempt
def _web_message(request: HttpRequest, target: Target, sent: Mapping[str, Any]) -> HttpResponse:
    """Return a page that posts the answer to the window that opened or framed it, if that is of the registered origin."""
    message = {"type": "authorization_response", "response": dict(sent)}
    answer = render(request, "hosted/web_message.html", {"message": json.dumps(message), "origin": target.web_origin})
    answer["Content-Security-Policy"] = _POLICY + f"form-action 'none'; frame-ancestors {target.web_origin}"
    # The message goes to a window of another origin, which the policy of the other pages would have cut off.
    answer["Cross-Origin-Opener-Policy"] = "unsafe-none"
    return answer
