"""Reads and checks the parameters of an authorization request. Uses no database.

First, `read` takes one value for each name. Then `target_of` checks the URL for answers. At last, `checked` lets the engine (`oauthlib`)
check the rest. A refusal of `target_of` is shown to the user, because the URL cannot be trusted. A refusal of `checked` is sent to the
client (RFC 6749, 4.1.2.1).
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

# Maximum length of all parameters together, which the service stores while the user logs in. A longer request is refused.
_MOST_CHARACTERS = 10_240
_ABSENT = ("", "undefined")
_TEXTS = ("nonce", "organization", "invitation", "login_hint", "screen_hint", "ui_locales", "id_token_hint", "dpop_jkt")
# Prefix of names in the state of a login. A client cannot set these names: `read` ignores parameters with this prefix.
_OWN = ":"
_PUSHED, _SIGNED, LINK_TO = ":pushed", ":signed", ":link_to"


@dataclass(frozen=True)
class Parameters:
    """One value for each name, and the names that were repeated. Unknown names are ignored (RFC 6749, 3.1).

    `pushed` is the digest of the pushed request with these parameters. `signed` is the expiry and the `jti` of the signed request object
    with these parameters, separated by a space. Both are empty for other requests. `link_to` is set for a login that links accounts: the id
    of the user who gets the account of this login.
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
        """The requested audience, possibly an empty text; None if the request does not contain the parameter."""
        return self.values.get("audience")

    @property
    def state(self) -> dict[str, str]:
        """The JSON object that a login stores for the request. `kept` converts it back to `Parameters`."""
        own = {_PUSHED: self.pushed, _SIGNED: self.signed, LINK_TO: self.link_to}
        return {**self.values, **{name: value for name, value in own.items() if value}}


def read(pairs: Iterable[tuple[str, str]]) -> Parameters:
    """Return the sent parameters without unset values. Raises `RequestRefused` for values that cannot be stored or sent back."""
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
    """Return the parameters of a stored login.

    A stored login has no repeated parameters, because the service refuses a request with repeated parameters.
    """
    values = {name: value for name, value in state.items() if not name.startswith(_OWN)}
    own = {"pushed": state.get(_PUSHED, ""), "signed": state.get(_SIGNED, ""), "link_to": state.get(LINK_TO, "")}
    return Parameters(values, frozenset(), **own)


def single(parameters: Parameters, name: str) -> str:
    """Return a value that may be sent at most once. Raises `RequestRefused` if the parameter is repeated."""
    if name in parameters.repeated:
        raise RequestRefused(RequestCase.REPEATED_PARAMETER, parameter=name)
    return parameters.get(name)


def target_of(parameters: Parameters, client: ClientFacts) -> Target:
    """Return the URL and the response mode for the answer.

    Raises `RequestRefused` without a valid URL; a page then shows the error to the user.
    """
    redirect_uri = _redirect_uri(single(parameters, "redirect_uri"), client)
    types = response_types(parameters.get("response_type"))
    default = "query" if types <= {"code"} else "fragment"
    mode = parameters.get("response_mode")
    # Tokens are never sent in a query, because servers and browser histories store queries (Multiple Response Types 1.0, 5).
    is_usable = mode in MODES and not (mode == "query" and default == "fragment")
    target = Target(redirect_uri, mode if is_usable else default, parameters.values.get("state"))
    if target.mode != "web_message":
        return target
    origin = web_origin_of(redirect_uri)
    if origin not in {web_origin_of(allowed) for allowed in client.web_origins}:
        raise RequestRefused(OAuthCase.WEB_ORIGIN_NOT_ALLOWED, origin=origin[:200])
    return Target(target.redirect_uri, target.mode, target.state, origin)


def checked(parameters: Parameters, client: ClientFacts, target: Target) -> AuthorizationRequest:
    """Let the engine check a request, and return the checked request. Raises `RequestRefused`, which is sent to the client."""
    call = AuthorizationCall(parameters.values, parameters.repeated, client, target)
    call.is_pushed, call.is_signed = bool(parameters.pushed), bool(parameters.signed)
    try:
        server().check_authorization(call)
    except OAuth2Error as error:
        # The engine refused the request in one of its own checks, which the checks of this service do not replace.
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
    """Return the URL for answers: the URL in the request if it is registered; if the request has no URL, the first registered URL."""
    if not client.callbacks:
        raise RequestRefused(LoginCase.NO_CALLBACK)
    if not given:
        if client.names_redirect_uri:
            raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="redirect_uri")
        # A registered URL with a wildcard cannot receive an answer.
        first = next((callback for callback in client.callbacks if "*" not in callback), None)
        if first is None:
            raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="redirect_uri")
        return first
    if not is_registered(given, client.callbacks, takes_wildcards=client.takes_wildcards, is_native=client.is_native):
        raise RequestRefused(LoginCase.CALLBACK_MISMATCH, redirect_uri=given[:200])
    return given
