"""Sending a browser to a provider, and turning what it brings back into claims that are proven."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from authlib.common.errors import AuthlibBaseError
from authlib.oauth2.client import OAuth2Client

from authapi.failures.logins import LoginCase
from authapi.login.login import Login
from authapi.login.wish import Prompt
from authapi.upstream.authentication_requests import AuthenticationRequest, begin_request
from authapi.upstream.exchange import ProviderSession
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.id_token import verified_claims
from authapi.upstream.metadata import Metadata, keys_of, metadata_of
from authapi.upstream.profile import needs_userinfo
from authapi.upstream.proven import Proven
from authapi.upstream.provider import Provider, passed_on, provider_of
from identity.models import Connection

CALLBACK_PATH = "login/callback"
# What a provider may be told of the client's wish: whom it is about, and in which language.
_HINTS = ("login_hint", "ui_locales")
_LONGEST_CODE = 4096
_LONGEST_TOLD = 300
# A browser's address has to hold it beside everything else when it logs out.
_LONGEST_HINT = 6000


def begin(login: Login, connection: Connection) -> str:
    """Return the address at the provider to which the browser goes. Raises `UpstreamFailed`.

    State, nonce and PKCE verifier are new each time (RFC 9700, 2.1.1 and 4.7): a second button ends the first way.
    """
    provider = provider_of(connection)
    metadata = metadata_of(provider)
    callback = login.host.issuer + CALLBACK_PATH
    request, state = begin_request(login.row, connection_id=connection.pk, issuer=metadata.issuer, callback=callback)
    wish = login.wish
    hints = {name: wish.parameters[name] for name in _HINTS if name in wish.parameters}
    # A user who must prove themselves again to us must do so there as well.
    prompt = {"prompt": "login"} if Prompt.LOGIN in wish.prompts else {}
    parameters = {**hints, **prompt, **provider.parameters, **passed_on(connection, wish.parameters)}
    for name in ("state", "nonce", "response_type", "redirect_uri", "client_id", "scope", "code_challenge", "code_challenge_method"):
        parameters.pop(name, None)
    address, _ = _client(provider, callback).create_authorization_url(
        metadata.browser_address("authorization_endpoint"),
        state=state,
        nonce=request.nonce,
        code_verifier=request.verifier if provider.uses_pkce else None,
        **parameters,
    )
    return str(address)


def proven(connection: Connection, request: AuthenticationRequest, answer: Mapping[str, str]) -> Proven:
    """Exchange the answer of a provider for claims. Raises `UpstreamFailed`.

    1. The answer is from the issuer that was asked (RFC 9207, 2.4).
    2. It is no refusal, and has a code.
    3. The code buys tokens, with our secret and verifier.
    4. The id token is judged.
    5. Where it says too little, the provider is asked for more about the same subject.
    """
    provider = provider_of(connection)
    metadata = metadata_of(provider)
    _check_issuer(metadata, request, answer.get("iss"))
    if answer.get("error"):
        raise _refusal(answer)
    code = answer.get("code", "")
    if not 0 < len(code) <= _LONGEST_CODE:
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, "The answer has neither a code nor an error.")
    tokens = _tokens(provider, metadata, request, code)
    claims = verified_claims(
        tokens.get("id_token"),
        issuer=metadata.issuer,
        client_id=provider.client_id,
        nonce=request.nonce,
        access_token=tokens.get("access_token"),
        keys=partial(keys_of, metadata.address("jwks_uri")),
    )
    id_token = str(tokens["id_token"])
    return Proven(claims, _userinfo(metadata, claims, tokens), kept={"id_token": id_token if len(id_token) <= _LONGEST_HINT else ""})


def _check_issuer(metadata: Metadata, request: AuthenticationRequest, named: str | None) -> None:
    # Mix-up: the connection may have been pointed elsewhere meanwhile, and another provider may have sent the browser.
    if metadata.issuer != request.issuer:
        raise UpstreamFailed(LoginCase.UPSTREAM_ISSUER_MISMATCH, "The connection has another issuer than when the login began.")
    if named != request.issuer and (named is not None or metadata.sends_issuer):
        raise UpstreamFailed(LoginCase.UPSTREAM_ISSUER_MISMATCH, "The `iss` of the answer is not the issuer that was asked.")


def _refusal(answer: Mapping[str, str]) -> UpstreamFailed:
    told = answer.get("error_description") or answer["error"]
    detail = "".join(character for character in told if character.isprintable())[:_LONGEST_TOLD]
    return UpstreamFailed(LoginCase.UPSTREAM_DENIED, detail)


def _tokens(provider: Provider, metadata: Metadata, request: AuthenticationRequest, code: str) -> dict[str, Any]:
    verifier = {"code_verifier": request.verifier} if provider.uses_pkce else {}
    try:
        tokens = _client(provider, request.callback).fetch_token(
            metadata.address("token_endpoint"), grant_type="authorization_code", code=code, **verifier
        )
    except AuthlibBaseError as error:
        raise UpstreamFailed(LoginCase.UPSTREAM_CODE_REFUSED, f"The token endpoint answered {error.error}.") from error
    except (ValueError, TypeError) as error:
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, "The token endpoint gave an answer that is none.") from error
    return dict(tokens)


def _userinfo(metadata: Metadata, claims: Mapping[str, Any], tokens: Mapping[str, Any]) -> dict[str, Any]:
    access_token = tokens.get("access_token")
    if not needs_userinfo(claims) or "userinfo_endpoint" not in metadata.addresses or not isinstance(access_token, str):
        return {}
    found = ProviderSession().get_json(metadata.address("userinfo_endpoint"), token=access_token)
    # OpenID Connect Core 1.0, 5.3.2: otherwise it may be about another user.
    if found.get("sub") != claims["sub"]:
        raise UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, "The userinfo endpoint speaks of another subject.")
    return found


def _client(provider: Provider, callback: str) -> OAuth2Client:
    method = "none" if not provider.secret else "client_secret_post" if provider.is_secret_posted else "client_secret_basic"
    return OAuth2Client(
        ProviderSession(),
        client_id=provider.client_id,
        client_secret=provider.secret or None,
        token_endpoint_auth_method=method,
        scope=provider.scope,
        redirect_uri=callback,
        code_challenge_method="S256",
    )
