"""A protocol for tests: `/toy?app=<client>&to=<address>` asks which user is logged in, and the answer is `<address>?user=<id>`.

`takes` names permissions that require consent. `silent` and `anew` control the login. `posts` sends the answer in a form. `bye` is the URL
at which the application is notified of a logout. No line of this module depends on OAuth.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.urls import path

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.requests import RequestCase
from authapi.login import flow
from authapi.login.browser import form_target, post_form, see_other, with_parameters
from authapi.login.protocol import BrowserCall, CompleteLogin, Protocol, ProtocolRequest, RoundTrip, SessionEnd
from authapi.login.sessions import note_client
from authapi.login.wish import Presentation, Prompt, Terms, Wish
from authapi.models import Client
from authapi.pages.tenant_page import tenant_page
from config.urls import handler404 as handler404
from config.urls import urlpatterns as served
from identity.hosts import HostMatch
from identity.models import Organization, User


@tenant_page("toy")
def ask(request: HttpRequest, host: HostMatch) -> HttpResponse:
    client = Client.objects.of(host.tenant_id).filter(client_id=request.GET.get("app", "")).first()
    if client is None:
        raise RequestRefused(LoginCase.UNKNOWN_CLIENT, client_id=request.GET.get("app", ""))
    state = {name: request.GET.get(name, "") for name in ("to", "takes", "silent", "anew", "posts", "bye")}
    return flow.begin(request, TOY, ProtocolRequest(host, client, state))


def wish_of(request: ProtocolRequest) -> Wish:
    state = request.state
    if state["to"] not in request.client.redirect_uris.split():
        raise RequestRefused(LoginCase.CALLBACK_MISMATCH, redirect_uri=state["to"])
    presentation = Presentation(form_target(state["to"]))
    if state["silent"] and state["anew"]:
        return Wish(presentation, refusal=RequestRefused(RequestCase.MALFORMED_REQUEST, reason="A silent login cannot be a new one."))
    prompts = frozenset({Prompt.LOGIN} if state["anew"] else ())
    return Wish(presentation, prompts=prompts, is_silent=bool(state["silent"]))


def terms(request: ProtocolRequest, user: User | None, organization: Organization | None) -> Terms:
    things = tuple(request.state["takes"].split())
    return Terms("toys", things, tuple(f"Play with your {thing}" for thing in things), "the toy box", is_implied_for_first_party=False)


def answer(http_request: HttpRequest, request: ProtocolRequest, login: CompleteLogin) -> HttpResponse:
    note_client(login.session, request.client, protocol=TOY.name, state={"bye": request.state["bye"]})
    told = {"user": login.session.user.user_id, "takes": " ".join(login.terms.scopes)}
    if request.state["posts"]:
        return post_form(http_request, request.state["to"], told)
    return see_other(http_request, with_parameters(request.state["to"], told))


def refuse(http_request: HttpRequest, request: ProtocolRequest, refused: RequestRefused) -> HttpResponse:
    wish_of(request)
    return see_other(http_request, with_parameters(request.state["to"], {"refused": refused.failure.error}))


def end_session(ending: SessionEnd) -> Sequence[RoundTrip]:
    told = {"reason": ending.reason, "back": ending.browser_handle}
    return [
        RoundTrip(participant.client.client_id, BrowserCall(with_parameters(participant.state["bye"], told)), {"told": ending.reason})
        for participant in ending.participants
        if participant.state["bye"] and ending.browser_handle
    ]


TOY = Protocol("toy", wish_of, terms, answer, refuse, end_session)
urlpatterns = [path("toy", ask), *served]
