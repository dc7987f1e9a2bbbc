"""OAuth 2.0 and OpenID Connect as an entry of the table of protocols.

The state that a login stores for these protocols contains the parameters of the request, by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from authapi.compliance.levels import answers_as_standard, has, level_of
from authapi.compliance.rules import EXACT_CALLBACKS, ISSUER_IN_ANSWER
from authapi.details.types import MEMBER as DETAILS
from authapi.factors.settings import offered_contexts
from authapi.failures import RequestRefused
from authapi.failures.standard import standard_redirect
from authapi.login.browser import form_target
from authapi.login.protocol import CompleteLogin, Protocol, ProtocolRequest, RoundTrip, SessionEnd
from authapi.login.round_trips import in_frames
from authapi.login.session_state import hide_ended, session_state, show_state
from authapi.login.sessions import note_client
from authapi.login.wish import Presentation, Prompt, Terms, UserHint, Wish
from authapi.models import Client, RefreshToken
from authapi.protocols.oauth.asked_claims import NONE
from authapi.protocols.oauth.authorization_request import AuthorizationRequest, ClientFacts, Target
from authapi.protocols.oauth.carried import claim, let_go
from authapi.protocols.oauth.front_channel import front_channel
from authapi.protocols.oauth.front_channel_logout import frame_addresses
from authapi.protocols.oauth.logout_notices import leave_notices
from authapi.protocols.oauth.parameters import Parameters, checked, kept, target_of
from authapi.protocols.oauth.responses import respond
from authapi.protocols.oauth.terms import terms_of
from authapi.protocols.oauth.unreviewed import warned
from authapi.tenant_settings import sign_in_settings
from authapi.tokens import contexts as context_table
from authapi.tokens.asked import Asked
from authapi.tokens.audiences import is_factors_audience
from authapi.tokens.id_token_hints import read_hint
from authapi.tokens.keys import trust
from authapi.tokens.user_tokens import CodeParameters, UserIssue
from identity.hosts import HostMatch
from identity.models import Organization, User

NAME = "oauth"
_PROMPTS = {
    "login": Prompt.LOGIN,
    "create": Prompt.CREATE,
    "select_account": Prompt.SELECT_ACCOUNT,
    "consent": Prompt.CONSENT,
}
_MOST_LANGUAGES = 20
# A refresh token with `online_access` and without `offline_access` ends when the session of the user ends (`UserIssue.is_online`).
_ONLINE_SCOPE = r"(^| )online_access( |$)"
_OFFLINE_SCOPE = r"(^| )offline_access( |$)"


def wish_of(request: ProtocolRequest) -> Wish:
    parameters, target = _parameters(request), _target(request)
    presentation = Presentation(
        form_target=form_target(target.redirect_uri),
        languages=tuple(parameters.get("ui_locales").split()[:_MOST_LANGUAGES]),
        # Old libraries open the login in a separate window, and wait for a message from this window.
        keeps_opener=target.is_framed or request.client.settings.get("cross_origin_authentication") is True,
    )
    try:
        authorization_request = checked(parameters, facts_of(request.client), target)
    except RequestRefused as refused:
        return Wish(presentation, refusal=refused)
    return Wish(
        presentation,
        connection=authorization_request.connection,
        organization=authorization_request.organization,
        invitation=authorization_request.invitation,
        prompts=_prompts(authorization_request, is_linking=bool(parameters.link_to)),
        link_to=parameters.link_to,
        max_age=authorization_request.max_age,
        is_silent=authorization_request.is_silent,
        prefers_sign_up=authorization_request.screen_hint == "signup",
        user_hint=_user_hint(authorization_request.id_token_hint, request.host.tenant_id),
        login_hint=authorization_request.login_hint,
        factors=asked_contexts(authorization_request),
        requires_factors=authorization_request.claims.requires_context,
        subjects=authorization_request.claims.subjects,
        asks_for_factor=is_factors_audience(authorization_request.audience or "", trust.get(request.host.tenant_id).hosts),
        parameters=parameters.values,
    )


def terms(request: ProtocolRequest, user: User | None, organization: Organization | None) -> Terms:
    parameters = _parameters(request)
    # The terms of each login are computed twice. To save time, the request is parsed again only if it contains claims or details.
    further: dict[str, Any] = {}
    if parameters.get("claims") or parameters.get(DETAILS):
        asked = _authorization_request(request)
        further = {"details": asked.details, "asked_claims": asked.claims}
    made = terms_of(request, parameters, user, organization, **further)
    return warned(made, request.client, answers_to=_target(request).redirect_uri) if request.client.is_self_registered else made


def answer(http_request: HttpRequest, request: ProtocolRequest, login: CompleteLogin) -> HttpResponse:
    claim(request.client, _parameters(request))
    authorization_request, session = _authorization_request(request), login.session
    target = authorization_request.target
    issue = UserIssue(
        host=request.host,
        client=request.client,
        user=session.user,
        connection=session.connection,
        audience=login.terms.audience,
        scopes=login.terms.scopes,
        session=session,
        organization=login.organization,
        auth_time=session.authenticated_at,
        methods=session.methods,
        nonce=authorization_request.nonce,
        lineage=uuid4(),
        confirmation=None,
        asked=_asked(authorization_request, login),
    )
    code = CodeParameters(
        target.redirect_uri,
        authorization_request.is_redirect_uri_given,
        authorization_request.code_challenge,
        authorization_request.code_challenge_method,
        authorization_request.dpop_jkt,
    )
    members = front_channel(issue, response_types=authorization_request.response_types, code_parameters=code, state=target.state)
    if issue.is_sign_in and (state := session_state(session, request.client, target.redirect_uri)):
        members["session_state"] = state
    note_client(session, request.client, protocol=NAME)
    keeps_opener = wish_of(request).presentation.keeps_opener
    made = respond(http_request, target, members, issuer=_issuer(request.host, request.client), keeps_opener=keeps_opener)
    show_state(made, session)
    return made


def refuse(http_request: HttpRequest, request: ProtocolRequest, refused: RequestRefused) -> HttpResponse:
    """Tell the client that its request has failed (RFC 6749, 4.1.2.1). If the request was pushed, also use it up."""
    let_go(request.client, _parameters(request))
    keeps_opener = wish_of(request).presentation.keeps_opener
    made = respond_refused(http_request, request, _target(request), refused, keeps_opener=keeps_opener)
    hide_ended(http_request, made, tenant_id=request.host.tenant_id)
    return made


def respond_refused(
    http_request: HttpRequest, request: ProtocolRequest, target: Target, refused: RequestRefused, *, keeps_opener: bool = False
) -> HttpResponse:
    """Send a refusal to the URL of `target`, which must already be checked."""
    failure = refused.failure
    error = standard_redirect(failure) if answers_as_standard(request.client.settings) else failure.error
    members = {"error": error, "error_description": failure.description}
    return respond(http_request, target, members, issuer=_issuer(request.host, request.client), keeps_opener=keeps_opener)


def end_session(ending: SessionEnd) -> Sequence[RoundTrip]:
    """Write a notice for each client that requests notices (back-channel), and revoke the refresh tokens that end with the session.

    If a browser is present, it loads the URLs that clients have registered for logouts (front-channel).
    """
    session = ending.session
    clients = [participant.client for participant in ending.participants]
    leave_notices(session, clients, reason=ending.reason)
    online = RefreshToken.objects.of(session.tenant_id).filter(sid=session.pk, revoked__isnull=True)
    online.filter(scope__regex=_ONLINE_SCOPE).exclude(scope__regex=_OFFLINE_SCOPE).update(revoked=timezone.now())
    addresses = frame_addresses(session, clients) if ending.browser_handle else []
    return (in_frames(ending.browser_handle, addresses),) if addresses else ()


def facts_of(client: Client) -> ClientFacts:
    """Return the settings of a client that affect its requests."""
    level = level_of(client.settings)
    return ClientFacts(
        client_id=client.client_id,
        callbacks=tuple(client.redirect_uris.split()),
        web_origins=tuple(client.settings.get("web_origins") or ()),
        grant_types=frozenset(client.grant_types),
        is_public=client.is_public,
        # RFC 9700, 2.1.1 demands S256. Only clients that are registered as not conformant may use `plain`.
        takes_plain=not client.is_public and client.settings.get("oidc_conformant") is False,
        level=level,
        takes_wildcards=not has(level, EXACT_CALLBACKS),
        is_native=client.app_type == "native",
        names_redirect_uri=client.settings.get("oauth_standard_errors") is True,
        requires_push=sign_in_settings(client.tenant_id).requires_pushed_requests
        or bool(client.settings.get("require_pushed_authorization_requests")),
        requires_signature=bool((client.settings.get("signed_request_object") or {}).get("required")),
        reads_resource=sign_in_settings(client.tenant_id).reads_resource,
    )


def asked_contexts(request: AuthorizationRequest) -> tuple[str, ...]:
    """Return the contexts of authentication that a request names, best first. If `claims` names no contexts, read `acr_values`."""
    return request.claims.contexts or request.acr_values


def _asked(request: AuthorizationRequest, login: CompleteLogin) -> Asked | None:
    """Return the details, claims and context that are granted in addition to scopes.

    Most requests name none of these. For such a request, return None.
    """
    claims, contexts, terms = request.claims, asked_contexts(request), login.terms
    if not (terms.details or claims is not NONE or contexts):
        return None
    acr = ""
    if contexts or claims.wants_context:
        offered = offered_contexts(login.session.tenant_id)
        acr = context_table.met(contexts or offered, login.session.methods, among=offered)
    is_sign_in = "openid" in terms.scopes
    id_token, userinfo = (claims.id_token, claims.userinfo) if is_sign_in else ((), ())
    return Asked(terms.details, id_token, userinfo, acr) if terms.details or id_token or userinfo or acr else None


def _parameters(request: ProtocolRequest) -> Parameters:
    return kept(request.state)


def _target(request: ProtocolRequest) -> Target:
    return target_of(_parameters(request), facts_of(request.client))


def _authorization_request(request: ProtocolRequest) -> AuthorizationRequest:
    return checked(_parameters(request), facts_of(request.client), _target(request))


def _prompts(request: AuthorizationRequest, *, is_linking: bool) -> frozenset[Prompt]:
    named = frozenset(_PROMPTS[prompt] for prompt in request.prompts if prompt in _PROMPTS)
    # The session of the browser belongs to the account that stays after linking. So require a new login: the user logs in to the other
    # account, which is then linked.
    return named | {Prompt.LOGIN} if is_linking else named


def _user_hint(token: str, tenant_id: str) -> UserHint | None:
    if not token:
        return None
    try:
        return UserHint(read_hint(token, tenant_id=tenant_id).subject)
    except RequestRefused as refused:
        return UserHint(refusal=refused)


def _issuer(host: HostMatch, client: Client) -> str:
    is_sent = sign_in_settings(host.tenant_id).sends_issuer or has(level_of(client.settings), ISSUER_IN_ANSWER)
    return host.issuer if is_sent else ""


OAUTH = Protocol(NAME, wish_of, terms, answer, refuse, end_session)
