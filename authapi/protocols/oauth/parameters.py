"""Parameters of an authorization request: read, and checked in the order in which they can be trusted. Without a database.

`read` makes one value of each name, `target_of` says where answers go, `checked` has the engine refuse what cannot be answered.
What `target_of` refuses is shown to the person, what `checked` refuses is sent to the client (RFC 6749, 4.1.2.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oauthlib.oauth2 import OAuth2Error

from authapi.clients.callbacks import is_registered
from authapi.clients.origins import web_origin_of
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.protocols.oauth.authorization_request import AuthorizationRequest, ClientFacts, Target
from authapi.protocols.oauth.checks import MODES
from authapi.protocols.oauth.engine import server
from authapi.protocols.oauth.engine_request import AuthorizationCall, response_types

# Everything that is kept while people log in; a longer request is refused.
_MOST_CHARACTERS = 10_240
_ABSENT = ("", "undefined")
_TEXTS = ("nonce", "organization", "invitation", "login_hint", "screen_hint", "ui_locales", "id_token_hint", "dpop_jkt")
# Names in the state of a login that no client can send: `read` leaves out what begins with the colon.
_OWN = ":"
_PUSHED, _SIGNED, LINK_TO = ":pushed", ":signed", ":link_to"


@dataclass(frozen=True)
class Parameters:
    """One value of each name, and the names that came more than once. Unknown ones are ignored (RFC 6749, 3.1).

    `pushed` is the digest of the pushed request that they come from. `signed` is the end and the `jti` of the signed request object that
    they come from, with a space between. Both are empty where the parameters came in no such way. `link_to` is the user id that the
    account that logs in is linked to, empty where nothing is linked.
    """

    values: Mapping[str, str]
    repeated: frozenset[str]
    pushed: str = ""
    signed: str = ""
    link_to: str = ""

    def get(self, name: str) -> str:
        return self.values.get(name, "")

    @property
    def scope(self) -> str:
        return self.get("scope") or "openid"

    @property
    def audience(self) -> str | None:
        """None where it is absent, which an empty one is not."""
        return self.values.get("audience")

    @property
    def state(self) -> dict[str, str]:
        """What a login keeps of the request, as `kept` reads it back."""
        own = {_PUSHED: self.pushed, _SIGNED: self.signed, LINK_TO: self.link_to}
        return {**self.values, **{name: value for name, value in own.items() if value}}


def read(pairs: Iterable[tuple[str, str]]) -> Parameters:
    """Return what was sent, unset values dropped. Raises `RequestRefused` for what cannot be kept or sent back."""
    values: dict[str, str] = {}
    repeated: set[str] = set()
    for name, value in pairs:
        if "\x00" in value:
            raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="A value contains a NUL character.")
        if value in _ABSENT or name.startswith(_OWN):
            continue
        if name in values:
            repeated.add(name)
        values.setdefault(name, value)
    if sum(map(len, values.values())) > _MOST_CHARACTERS:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The parameters are longer than {_MOST_CHARACTERS} characters.")
    return Parameters(values, frozenset(repeated))


def kept(state: Mapping[str, str]) -> Parameters:
    """Return the parameters of a login. A request with a repeated parameter is refused before it becomes one."""
    values = {name: value for name, value in state.items() if not name.startswith(_OWN)}
    own = {"pushed": state.get(_PUSHED, ""), "signed": state.get(_SIGNED, ""), "link_to": state.get(LINK_TO, "")}
    return Parameters(values, frozenset(), **own)


def single(parameters: Parameters, name: str) -> str:
    """Return a value that was sent at most once; raise `RequestRefused` otherwise."""
    if name in parameters.repeated:
        raise RequestRefused(RequestCase.REPEATED_PARAMETER, parameter=name)
    return parameters.get(name)


def target_of(parameters: Parameters, client: ClientFacts) -> Target:
    """Return where answers go. Raises `RequestRefused` where that is nowhere; then a page tells the person."""
    redirect_uri = _redirect_uri(single(parameters, "redirect_uri"), client)
    types = response_types(parameters.get("response_type"))
    default = "query" if types <= {"code"} else "fragment"
    mode = parameters.get("response_mode")
    # Tokens never stand in a query, where servers and histories keep them (Multiple Response Types 1.0, 5).
    is_usable = mode in MODES and not (mode == "query" and default == "fragment")
    target = Target(redirect_uri, mode if is_usable else default, parameters.values.get("state"))
    if target.mode != "web_message":
        return target
    origin = web_origin_of(redirect_uri)
    if origin not in {web_origin_of(allowed) for allowed in client.web_origins}:
        raise RequestRefused(OAuthCase.WEB_ORIGIN_NOT_ALLOWED, origin=origin[:200])
    return Target(target.redirect_uri, target.mode, target.state, origin)


def checked(parameters: Parameters, client: ClientFacts, target: Target) -> AuthorizationRequest:
    """Have the engine check a request; return it when it may be answered. Raises `RequestRefused` for the client otherwise."""
    call = AuthorizationCall(parameters.values, parameters.repeated, client, target)
    call.is_pushed, call.is_signed = bool(parameters.pushed), bool(parameters.signed)
    try:
        server().check_authorization(call)
    except OAuth2Error as error:
        # A check that the engine has and we have not.
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=error.description or error.error) from error
    texts = {name: parameters.get(name) for name in _TEXTS}
    return AuthorizationRequest(
        target=target,
        client_id=client.client_id,
        response_types=call.types,
        is_redirect_uri_given=bool(parameters.get("redirect_uri")),
        scope=parameters.scope,
        audience=parameters.audience,
        code_challenge=call.code_challenge or "",
        code_challenge_method=call.code_challenge_method or "",
        prompts=call.prompts,
        max_age=call.max_age,
        connection=parameters.get("connection") or parameters.get("realm"),
        details=call.details,
        claims=call.claims,
        acr_values=tuple(parameters.get("acr_values").split()),
        **texts,
    )


def _redirect_uri(given: str, client: ClientFacts) -> str:
    """Return the address for answers: the given one when it matches a registered one, the first registered one without it."""
    if not client.callbacks:
        raise RequestRefused(LoginCase.NO_CALLBACK)
    if not given:
        if client.names_redirect_uri:
            raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="redirect_uri")
        # A wildcard is no address.
        first = next((callback for callback in client.callbacks if "*" not in callback), None)
        if first is None:
            raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="redirect_uri")
        return first
    if not is_registered(given, client.callbacks, takes_wildcards=client.takes_wildcards, is_native=client.is_native):
        raise RequestRefused(LoginCase.CALLBACK_MISMATCH, redirect_uri=given[:200])
    return given
