"""Sends a browser to a provider, and turns the provider's answer into verified claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import orjson
from authlib.common.errors import AuthlibBaseError
from authlib.oauth2.client import DEFAULT_HEADERS, OAuth2Client

from authapi.failures.logins import LoginCase
from authapi.login.browser import with_parameters
from authapi.login.login import Login
from authapi.login.wish import Prompt
from authapi.upstream.authentication_requests import AuthenticationRequest, begin_request
from authapi.upstream.exchange import ProviderSession
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.id_token import verified_claims
from authapi.upstream.metadata import Metadata, keys_of, metadata_of
from authapi.upstream.openid_claims import openid_proven
from authapi.upstream.proven import Proven
from authapi.upstream.provider import Provider, passed_on, provider_of
from authapi.upstream.sent_claims import CLAIMS
from authapi.upstream.social.known_providers import Peculiarity
from authapi.upstream.social.profile_calls import profile_claims
from identity.models import Connection
from identity.options import guides

CALLBACK_PATH = guides.CALLBACK_PATH
_PROTECTED = frozenset(
    {
        *("state", "nonce", "response_type", "response_mode", "redirect_uri", "client_id", "client_secret", "scope"),
        *("code_challenge", "code_challenge_method", "request", "request_uri"),
    }
)
_LONGEST_CODE = 4096
_LONGEST_TOLD = 300
_LONGEST_USER = 2000
_NAMES = {"given_name": "firstName", "family_name": "lastName"}
# Maximum length of an id token that is stored for the logout at the provider. The URL of that logout contains the id token, so this limit
# also keeps the URL short.
_LONGEST_HINT = 6000


def begin(login: Login, connection: Connection) -> str:
    """Return the URL at the provider to which the browser goes. Raises `UpstreamFailed`.

    State, nonce and PKCE verifier are new each time (RFC 9700, 2.1.1 and 4.7). If the user presses a button for a provider again, an answer
    to the earlier request is refused.
    """
    provider = provider_of(connection)
    metadata = metadata_of(provider)
    callback = login.host.issuer + CALLBACK_PATH
    request, state = begin_request(login.row, connection_id=connection.pk, issuer=metadata.issuer, callback=callback)
    wish = login.wish
    hints = {theirs: wish.parameters[ours] for theirs, ours in provider.row.hints.items() if ours in wish.parameters}
    # If the client demands a new login, the provider gets this demand, too. `again` is empty for a provider that does not support it.
    again = provider.row.again if Prompt.LOGIN in wish.prompts else {}
    return authorization_address(
        provider, metadata, request, state, {**hints, **again, **provider.parameters, **passed_on(connection, wish.parameters)}
    )


def authorization_address(
    provider: Provider, metadata: Metadata, request: AuthenticationRequest, state: str, parameters: Mapping[str, str]
) -> str:
    """Return the address for the browser. Raises `UpstreamFailed`.

    `parameters` never replace the parameters that protect the login, such as `state` and `nonce`.
    """
    free = {name: value for name, value in parameters.items() if name not in _PROTECTED}
    if provider.row.has(Peculiarity.FORM_POST):
        free["response_mode"] = "form_post"
    nonce = {} if provider.row.calls else {"nonce": request.nonce}
    address, _ = _client(provider, request.callback, secret="").create_authorization_url(
        metadata.browser_address("authorization_endpoint"),
        state=state,
        code_verifier=request.verifier if provider.uses_pkce else None,
        **nonce,
    )
    return with_parameters(str(address), free)


def proven(connection: Connection, request: AuthenticationRequest, answer: Mapping[str, str]) -> Proven:
    """Exchange the answer of a provider for claims. Raises `UpstreamFailed`.

    1. The answer must be from the issuer that got the request (RFC 9207, 2.4).
    2. The answer must have a code, and must not be a refusal.
    3. The code is exchanged for tokens, with the client secret of the connection and the PKCE verifier.
    4. The id token is checked. A provider without id tokens returns the profile for the access token.
    5. If the id token has too few claims, the userinfo endpoint is read. Its answer must have the same subject.
    """
    provider = provider_of(connection)
    metadata = metadata_of(provider)
    _check_issuer(provider, metadata, request, answer.get("iss"))
    if answer.get("error"):
        raise _refusal(answer)
    code = answer.get("code", "")
    if not 0 < len(code) <= _LONGEST_CODE:
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, "The answer has neither a code nor an error.")
    tokens = _tokens(provider, metadata, request, code)
    if provider.row.calls:
        claims = profile_claims(provider, metadata, tokens.get("access_token"))
        return Proven(claims, sent={CLAIMS: claims})
    told = _claims(provider, metadata, request, tokens)
    form = name_in_form(answer.get("user", "")) if provider.row.has(Peculiarity.NAME_IN_FORM) else {}
    id_token = str(tokens["id_token"])
    found = openid_proven(provider, told, partial(_userinfo, metadata, tokens), form=form)
    return replace(found, kept={"id_token": id_token if len(id_token) <= _LONGEST_HINT else ""})


def name_in_form(user: str) -> dict[str, str]:
    """Return the claims of the name in `user`, the form field that Apple sends with the code of the first login; empty without a name.

    The browser posts the field without a signature. So only the name in it is used; an email address in it is ignored.
    """
    if not 0 < len(user) <= _LONGEST_USER:
        return {}
    try:
        document = orjson.loads(user)
    except ValueError:
        return {}
    name = document.get("name") if isinstance(document, dict) else None
    parts = {claim: name.get(member) for claim, member in _NAMES.items()} if isinstance(name, dict) else {}
    found = {claim: value.strip() for claim, value in parts.items() if isinstance(value, str) and value.strip()}
    return {**found, "name": " ".join(found.values())} if found else {}


def _claims(provider: Provider, metadata: Metadata, request: AuthenticationRequest, tokens: Mapping[str, Any]) -> dict[str, Any]:
    access_token = tokens.get("access_token")
    return verified_claims(
        tokens.get("id_token"),
        issuer=partial(provider.expected_issuer, metadata.issuer),
        client_id=provider.client_id,
        nonce=request.nonce,
        access_token=access_token,
        keys=partial(keys_of, metadata.address("jwks_uri")),
        needs_nonce=not provider.row.has(Peculiarity.NO_NONCE),
    )


def _check_issuer(provider: Provider, metadata: Metadata, request: AuthenticationRequest, named: str | None) -> None:
    # Two cases are refused: an administrator changed the issuer of the connection during the login, or the answer is from another provider
    # (a mix-up attack).
    if metadata.issuer != request.issuer:
        raise UpstreamFailed(LoginCase.UPSTREAM_ISSUER_MISMATCH, "The issuer of the connection was changed after the login began.")
    if named is None and not metadata.sends_issuer:
        return
    if named is None or not provider.may_be_named(request.issuer, named):
        raise UpstreamFailed(LoginCase.UPSTREAM_ISSUER_MISMATCH, "The `iss` of the answer is not the issuer that got the request.")


def _refusal(answer: Mapping[str, str]) -> UpstreamFailed:
    return UpstreamFailed(LoginCase.UPSTREAM_DENIED, _printable(answer.get("error_description") or answer["error"]))


def _printable(told: str) -> str:
    return "".join(character for character in told if character.isprintable())[:_LONGEST_TOLD]


def _tokens(provider: Provider, metadata: Metadata, request: AuthenticationRequest, code: str) -> dict[str, Any]:
    verifier = {"code_verifier": request.verifier} if provider.uses_pkce else {}
    client = _client(provider, request.callback, secret=provider.client_secret)
    try:
        tokens = client.fetch_token(
            metadata.address("token_endpoint"),
            headers={**provider.headers, **DEFAULT_HEADERS},
            grant_type="authorization_code",
            code=code,
            **verifier,
        )
    except AuthlibBaseError as error:
        # Some providers send an error with status 200. If `error` is not a string, the log gets only "an error": the value may contain the
        # authorization code.
        told = _printable(error.error) if isinstance(error.error, str) else "an error"
        raise UpstreamFailed(LoginCase.UPSTREAM_CODE_REFUSED, f"The token endpoint answered {told}.") from error
    except (ValueError, TypeError) as error:
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, "The token endpoint gave an invalid answer.") from error
    return dict(tokens)


def _userinfo(metadata: Metadata, tokens: Mapping[str, Any]) -> dict[str, Any] | None:
    access_token = tokens.get("access_token")
    if "userinfo_endpoint" not in metadata.addresses or not isinstance(access_token, str):
        return None
    return ProviderSession().get_json(metadata.address("userinfo_endpoint"), token=access_token)


def _client(provider: Provider, callback: str, *, secret: str) -> OAuth2Client:
    method = "none" if not secret else "client_secret_post" if provider.is_secret_posted else "client_secret_basic"
    return OAuth2Client(
        ProviderSession(),
        client_id=provider.client_id,
        client_secret=secret or None,
        token_endpoint_auth_method=method,
        scope=provider.scope or None,
        redirect_uri=callback,
        code_challenge_method="S256",
    )
