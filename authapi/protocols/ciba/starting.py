"""Starts an approval request (CIBA). All checks run before the user is notified, so that the client gets each refusal immediately."""

from __future__ import annotations

from authapi.edge.countries import country_in
from authapi.failures import RequestRefused
from authapi.failures.ciba import CibaCase
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.grants.ciba import GRANT
from authapi.grants.details import requested_details
from authapi.grants.password import person_behind
from authapi.grants.targets import audience_of
from authapi.login.connections import client_connections
from authapi.login.protocol import ProtocolRequest
from authapi.models import Client
from authapi.protocols.ciba.entry import parameters_of
from authapi.protocols.ciba.limits import count_unknown, require_guess, take
from authapi.protocols.ciba.notifying import channel_for, check_reachable, notify
from authapi.protocols.ciba.reading import binding_message_of, check_support, contexts_of, seconds_of, user_id_of
from authapi.protocols.oauth.terms import terms_of
from authapi.services.sign_in_log import note
from authapi.token_request import TokenRequest
from authapi.tokens.bindings import KEY
from authapi.tokens.ciba_requests import Begun, Wanted, begin_request
from foundation.database.transactions import unit_of_work
from identity.hosts import HostMatch
from identity.models import LinkedIdentity, User

_LONGEST_SCOPE = 10_240
_LONGEST_AUDIENCE = 600
_STARTED, _FAILED = "ciba_start_succeeded", "ciba_start_failed"
_NO_USER = "The user does not exist, is blocked, or has no connection that the application may use."


def started(request: TokenRequest, client: Client) -> Begun:
    """Create the request of an authenticated client and notify its user. Raises `RequestRefused`.

    Looks up the user only after the grant type and the requested terms are checked. So a client learns nothing about users if it may not
    use CIBA, or if it requests terms that no user can grant.
    """
    if not client.allows_grant_type(GRANT):
        raise RequestRefused(OAuthCase.GRANT_NOT_ALLOWED, grant=GRANT)
    check_support(request)
    user_id, message, contexts = user_id_of(request), binding_message_of(request), contexts_of(request)
    scope, audience, details = request.text("scope") or "", audience_of(request) or "", requested_details(request)
    _check_texts(scope, audience)
    terms_of(ProtocolRequest(request.host, client, {}), parameters_of(scope, audience), None, None, details=details)
    channel = channel_for(client)
    seconds = seconds_of(request, channel)
    user = _user(request, client, user_id)
    check_reachable(channel, user)
    sender = person_behind(request, client)
    wanted = Wanted(
        client,
        user,
        scope,
        audience,
        message,
        seconds,
        channel,
        sender.ip,
        # The proxy in front of the service reports the country of `request.address`. If a server of the client sent the request for a
        # person with another address, the country of the person is unknown.
        country=(country_in(request.headers) or "") if sender.ip == request.address else "",
        acr_values=contexts,
        confirmation={KEY: request.key} if request.key else None,
        details=details,
    )
    return _begun(wanted, request.host, user_agent=sender.user_agent)


@unit_of_work
def _begun(wanted: Wanted, host: HostMatch, *, user_agent: str) -> Begun:
    """Store the request and queue its message in one transaction."""
    take(wanted.client, wanted.user)
    begun = begin_request(wanted)
    notify(begun, host)
    note(
        tenant_id=host.tenant_id,
        type=_STARTED,
        is_success=True,
        user=wanted.user,
        client=wanted.client,
        connection=wanted.user.connection.name,
        ip=wanted.ip,
        user_agent=user_agent,
        details={"channel": wanted.channel, "binding_message": wanted.binding_message},
    )
    return begun


def _user(request: TokenRequest, client: Client, user_id: str) -> User:
    """Return the user from whom a client may request an approval. Raises `RequestRefused`, with the same error for every reason."""
    require_guess(client)
    user = User.objects.of(client.tenant_id).select_related("connection").filter(user_id=user_id).first() if user_id else None
    if user is not None and not user.blocked and _may_log_in(user, client):
        return user
    count_unknown(client)
    sender = person_behind(request, client)
    note(
        tenant_id=client.tenant_id,
        type=_FAILED,
        is_success=False,
        description=_NO_USER,
        user=user,
        user_name="" if user is not None else user_id,
        client=client,
        ip=sender.ip,
        user_agent=sender.user_agent,
    )
    raise RequestRefused(CibaCase.UNKNOWN_USER)


def _may_log_in(user: User, client: Client) -> bool:
    """Tell whether the user can log in to this client: with the account, or with a linked account."""
    enabled = {connection.pk for connection in client_connections(client)}
    if user.connection_id in enabled:
        return True
    return LinkedIdentity.objects.of(client.tenant_id).filter(user=user, connection__in=enabled).exists()


def _check_texts(scope: str, audience: str) -> None:
    """Raise `RequestRefused` for texts that a row cannot store."""
    if len(scope) > _LONGEST_SCOPE:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The scope is longer than {_LONGEST_SCOPE} characters.")
    if len(audience) > _LONGEST_AUDIENCE:
        raise RequestRefused(OAuthCase.UNKNOWN_AUDIENCE, audience=audience[:200])
    if "\x00" in scope + audience:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="A value contains a NUL character.")
