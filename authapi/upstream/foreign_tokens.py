"""Access tokens that a provider issued and an application presents: checks for which application a token was issued, and finds the user of
the token."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from authapi.failures.logins import LoginCase
from authapi.upstream.exchange import ProviderAnswer, ProviderSession
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.metadata import Metadata, discovered, metadata_of
from authapi.upstream.proven import Proven
from authapi.upstream.provider import Provider, provider_of
from authapi.upstream.social.known_providers import OPENID, TokenCheck
from authapi.upstream.social.profile_calls import checked_token, judged_claims, profile_claims, value_of, with_subject
from identity.models import Connection

# The check for a provider with an introspection endpoint. RFC 7662, 2.2: only a token with `active: true` is valid.
_INTROSPECTION = TokenCheck(
    "introspection_endpoint", "POST", "form", "token", proof="basic", clients="client_id", subject="sub", alive="active == `true`"
)
# The check for Google: no other discovery document has the member `tokeninfo_endpoint`.
_TOKENINFO = TokenCheck("tokeninfo_endpoint", "GET", "query", "access_token", proof="none", clients="[aud, azp || aud]", subject="sub")
_JSON = {"Accept": "application/json"}
_FORM_TYPE = "application/x-www-form-urlencoded"


class CannotTell(Exception):
    """The provider has no endpoint that returns the application to which a token was issued."""


def owner_of_token(connection: Connection, token: str) -> Proven:
    """Return the user to whom the token was issued. Raises `UpstreamFailed`, and `CannotTell` for a provider without a suitable endpoint.

    1. The provider must confirm that the token is valid and was issued to a client that this connection accepts.
    2. The profile names the user. If the answer to the check also names a subject, this subject must equal the subject of the profile.
    """
    token = checked_token(token)
    provider = provider_of(connection)
    metadata = discovered(provider) if provider.discovery_url else metadata_of(provider)
    check = _check_of(provider, metadata)
    told = _told(_asked(check, provider, metadata, token))
    if value_of(check.alive, told) is not True:
        raise _refused("The provider answers that the token is not active.")
    named = value_of(check.clients, told)
    clients = named if isinstance(named, list) else [named]
    if not clients or not all(isinstance(one, str) and one in _accepted(connection, provider) for one in clients):
        raise _refused("The token was issued to another application.")
    claims = _profile(provider, metadata, token)
    if check.subject and with_subject({"sub": value_of(check.subject, told)})["sub"] != claims["sub"]:
        raise _refused("The profile belongs to another subject.")
    return Proven(claims)


def _check_of(provider: Provider, metadata: Metadata) -> TokenCheck:
    """Return how to check a token: from the table of known providers, or for an OpenID provider from its discovery document."""
    if provider.row is not OPENID:
        check = provider.row.token_check
        if check is None:
            raise CannotTell
        if check.proof != "none" and not provider.secret:
            raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, "The connection has no client_secret, which the check of a token needs.")
        return check
    for check in (_TOKENINFO, _INTROSPECTION):
        if metadata.addresses.get(check.address):
            return check
    raise CannotTell


def _accepted(connection: Connection, provider: Provider) -> set[str]:
    """Return the clients whose tokens are accepted: the client of the connection, and the clients in its option `allowed_audiences`."""
    named = connection.options.get("allowed_audiences")
    return {provider.client_id, *(one for one in (named if isinstance(named, list) else ()) if isinstance(one, str))}


def _profile(provider: Provider, metadata: Metadata, token: str) -> dict[str, Any]:
    if provider.row.calls:
        return profile_claims(provider, metadata, token)
    userinfo = ProviderSession().get_json(metadata.address("userinfo_endpoint"), token=token)
    return with_subject(judged_claims(provider, userinfo))


def _asked(check: TokenCheck, provider: Provider, metadata: Metadata, token: str) -> ProviderAnswer:
    """Send the token to the endpoint that checks it. `check.proof` says how the client of the connection authenticates, if at all."""
    address = metadata.address(check.address)
    sent, headers = {check.parameter: token}, dict(_JSON)
    proof = check.proof
    if proof == "basic" and check.sent == "form" and (provider.is_secret_posted or not provider.secret):
        proof = "form"
    if proof == "basic":
        headers["Authorization"] = _basic(provider)
    elif proof == "app_token":
        headers["Authorization"] = f"Bearer {provider.client_id}|{provider.secret}"
    elif proof == "form":
        sent |= {"client_id": provider.client_id, **({"client_secret": provider.secret} if provider.secret else {})}
    if check.sent == "query":
        return ProviderSession().send(check.verb, f"{address}?{urlencode(sent)}", headers=headers, body=None)
    if check.sent == "json":
        return ProviderSession().send(check.verb, address, headers={**headers, "Content-Type": "application/json"}, body=orjson.dumps(sent))
    return ProviderSession().send(check.verb, address, headers={**headers, "Content-Type": _FORM_TYPE}, body=urlencode(sent).encode())


def _basic(provider: Provider) -> str:
    # RFC 6749, 2.3.1: the client id and the secret are each form-encoded.
    credential = f"{quote(provider.client_id, safe='')}:{quote(provider.secret, safe='')}"
    return "Basic " + base64.b64encode(credential.encode()).decode()


def _told(answer: ProviderAnswer) -> Mapping[str, Any]:
    # GitHub answers 404 for a token of another application.
    if answer.status_code in (400, 401, 403, 404, 422):
        raise _refused(f"The provider answered {answer.status_code}.")
    if answer.status_code != 200:
        raise UpstreamFailed(LoginCase.UPSTREAM_UNREACHABLE, f"The provider answered {answer.status_code}.")
    try:
        told = answer.json()
    except ValueError as error:
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, "The provider did not answer with JSON.") from error
    if not isinstance(told, dict):
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, "The provider did not answer with a JSON object.")
    return told


def _refused(detail: str) -> UpstreamFailed:
    return UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, detail)
