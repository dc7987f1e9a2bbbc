"""Parameters of an authorization request: read, and checked in the order in which they can be trusted. Pure.

`read` makes one value of each name, `target_of` says where answers go, `checked` refuses what cannot be answered. What
`target_of` refuses is shown to the person, what `checked` refuses is sent to the client (RFC 6749, 4.1.2.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from authapi.clients.callbacks import is_registered
from authapi.clients.origins import web_origin_of
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.protocols.oauth.authorization_request import AuthorizationRequest, ClientFacts, Target

RESPONSE_TYPES = frozenset({"code", "token", "id_token"})
MODES = ("query", "fragment", "form_post", "web_message")
PROMPTS = frozenset({"none", "login", "consent", "select_account", "create"})
# Everything that is kept while people log in; a longer request is refused.
_MOST_CHARACTERS = 10_240
_ABSENT = ("", "undefined")
# RFC 7636, 4.1 and 4.2.
_CHALLENGES = {"S256": re.compile(r"[A-Za-z0-9_-]{43}"), "plain": re.compile(r"[A-Za-z0-9._~-]{43,128}")}
_PASSED_OVER = {
    "request": OAuthCase.REQUEST_OBJECT_NOT_SUPPORTED,
    "request_uri": OAuthCase.REQUEST_URI_NOT_SUPPORTED,
    "registration": OAuthCase.REGISTRATION_NOT_SUPPORTED,
}


@dataclass(frozen=True)
class Parameters:
    """One value of each name, and the names that came more than once. Unknown ones are ignored (RFC 6749, 3.1)."""

    values: Mapping[str, str]
    repeated: frozenset[str]

    def get(self, name: str) -> str:
        return self.values.get(name, "")


def read(pairs: Iterable[tuple[str, str]]) -> Parameters:
    """Return what was sent, unset values dropped. Raises `RequestRefused` for what cannot be kept or sent back."""
    values: dict[str, str] = {}
    repeated: set[str] = set()
    for name, value in pairs:
        if "\x00" in value:
            raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="A value contains a NUL character.")
        if value in _ABSENT:
            continue
        if name in values:
            repeated.add(name)
        values.setdefault(name, value)
    if sum(map(len, values.values())) > _MOST_CHARACTERS:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The parameters are longer than {_MOST_CHARACTERS} characters.")
    return Parameters(values, frozenset(repeated))


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
    """Return the request when it may be answered; raise `RequestRefused` for the client otherwise."""
    for name in sorted(parameters.repeated):
        raise RequestRefused(RequestCase.REPEATED_PARAMETER, parameter=name[:100])
    if parameters.get("dpop_jkt"):
        # RFC 9449, 10: the client would take its tokens for bound ones.
        raise RequestRefused(OAuthCase.DPOP_NOT_SUPPORTED)
    for name, case in _PASSED_OVER.items():
        if parameters.get(name):
            raise RequestRefused(case)
    types = _allowed_types(parameters.get("response_type"), client)
    _check_mode(parameters.get("response_mode"), target)
    if "id_token" in types and not parameters.get("nonce"):
        # Core 1.0, 3.2.2.1 and 3.3.2.11: without one a replayed id token could not be told apart.
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="nonce")
    challenge, method = _challenge(parameters, client, is_code="code" in types)
    texts = {name: parameters.get(name) for name in ("nonce", "organization", "login_hint", "screen_hint", "ui_locales", "id_token_hint")}
    return AuthorizationRequest(
        target=target,
        client_id=client.client_id,
        response_types=types,
        is_redirect_uri_given=bool(parameters.get("redirect_uri")),
        scope=parameters.get("scope") or "openid",
        audience=parameters.values.get("audience"),
        code_challenge=challenge,
        code_challenge_method=method,
        prompts=_prompts(parameters.get("prompt")),
        max_age=_max_age(parameters.get("max_age")),
        connection=parameters.get("connection") or parameters.get("realm"),
        **texts,
    )


def response_types(text: str) -> frozenset[str]:
    """Return the set behind a response type: the order of its words does not count."""
    return frozenset(text.split())


def _redirect_uri(given: str, client: ClientFacts) -> str:
    """Return the address for answers: the given one when it matches a registered one, the first registered one without it."""
    if not client.callbacks:
        raise RequestRefused(LoginCase.NO_CALLBACK)
    if not given:
        # A wildcard is no address.
        first = next((callback for callback in client.callbacks if "*" not in callback), None)
        if first is None:
            raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="redirect_uri")
        return first
    if not is_registered(given, client.callbacks, takes_wildcards=client.takes_wildcards, is_native=client.is_native):
        raise RequestRefused(LoginCase.CALLBACK_MISMATCH, redirect_uri=given[:200])
    return given


def _allowed_types(text: str, client: ClientFacts) -> frozenset[str]:
    if not text:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="response_type")
    types = response_types(text)
    if not types or not types <= RESPONSE_TYPES:
        raise RequestRefused(OAuthCase.UNSUPPORTED_RESPONSE_TYPE, response_type=text[:100])
    needed = [("authorization_code", "code" in types), ("implicit", types != {"code"})]
    for grant, is_needed in needed:
        if is_needed and grant not in client.grant_types:
            raise RequestRefused(OAuthCase.RESPONSE_TYPE_NOT_ALLOWED, response_type=text[:100], grant=grant)
    return types


def _check_mode(mode: str, target: Target) -> None:
    if mode and mode not in MODES:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"Unsupported response mode: {mode[:100]}")
    if mode and mode != target.mode:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The response mode query cannot carry tokens.")


def _challenge(parameters: Parameters, client: ClientFacts, *, is_code: bool) -> tuple[str, str]:
    """Return challenge and method of PKCE. A public client must send one, and `plain` is for clients that asked for it."""
    challenge, method = parameters.get("code_challenge"), parameters.get("code_challenge_method")
    if not is_code:
        return "", ""
    if not challenge:
        if client.is_public or method:
            raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="code_challenge")
        return "", ""
    # RFC 7636, 4.3: absent is plain.
    method = method or "plain"
    if method not in _CHALLENGES or (method == "plain" and not client.takes_plain):
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The code_challenge_method must be S256.")
    if not _CHALLENGES[method].fullmatch(challenge):
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The code_challenge is not one of the method {method}.")
    return challenge, method


def _prompts(text: str) -> frozenset[str]:
    prompts = frozenset(text.split())
    unknown = sorted(prompts - PROMPTS)
    if unknown:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"Unsupported prompt: {unknown[0][:100]}")
    if "none" in prompts and len(prompts) > 1:
        # Core 1.0, 3.1.2.1.
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The prompt none stands alone.")
    return prompts


def _max_age(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The max_age must be a number of seconds.")
    return int(text)
