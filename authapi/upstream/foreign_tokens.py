"""Access tokens of providers that an application presents: for which application they were issued, and whose they are."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from authapi.failures.logins import LoginCase
from authapi.upstream.exchange import ProviderAnswer, ProviderSession
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.metadata import Metadata, discovered
from authapi.upstream.proven import Proven
from authapi.upstream.provider import Provider, provider_of
from foundation.json_values import text_problem
from identity.models import Connection

# Google publishes no endpoint of RFC 7662. This one answers for which client a token was issued.
_TOKENINFO = {"google-oauth2": "https://oauth2.googleapis.com/tokeninfo"}
_LONGEST_TOKEN = 8192
# RFC 6749, A.12: visible characters and spaces. A space would end the token in the header that carries it.
_TOKEN = re.compile(r"[\x21-\x7e]+")
_LONGEST_SUBJECT = 255


class CannotTell(Exception):
    """The provider has no endpoint that says for which application a token was issued."""


def owner_of_token(connection: Connection, token: str) -> Proven:
    """Return the user whose token this is. Raises `UpstreamFailed`, and `CannotTell` for a provider that cannot be asked.

    1. The provider says that the token is alive and was issued to the client of this connection.
    2. The userinfo endpoint says whose it is, and both name the same subject.
    """
    if len(token) > _LONGEST_TOKEN or not _TOKEN.fullmatch(token):
        raise _refused("It is no token.")
    provider = provider_of(connection)
    metadata = discovered(provider) if provider.discovery_url else Metadata(provider.issuer, provider.addresses)
    subject = _subject(connection, provider, metadata, token)
    userinfo = ProviderSession().get_json(metadata.address("userinfo_endpoint"), token=token)
    if userinfo.get("sub") != subject:
        raise _refused("The userinfo endpoint speaks of another subject.")
    return Proven(userinfo)


def _subject(connection: Connection, provider: Provider, metadata: Metadata, token: str) -> str:
    """Return the subject of a token that was issued to our client."""
    if address := metadata.addresses.get("tokeninfo_endpoint") or _TOKENINFO.get(connection.strategy):
        told = _told(ProviderSession().send("GET", f"{address}?{urlencode({'access_token': token})}", headers=_JSON, body=None))
        clients = {told.get("aud"), told.get("azp", told.get("aud"))}
    elif address := metadata.addresses.get("introspection_endpoint"):
        told = _introspected(address, provider, token)
        clients = {told.get("client_id")}
    else:
        raise CannotTell
    if not clients <= _accepted(connection, provider):
        raise _refused("It was issued to another application.")
    subject = told.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT or text_problem(subject):
        raise _refused("The provider names no subject.")
    return subject


def _accepted(connection: Connection, provider: Provider) -> set[Any]:
    """Return the clients at the provider whose tokens count: ours, and those of our apps that an administrator names."""
    named = connection.options.get("allowed_audiences")
    return {provider.client_id, *(one for one in (named if isinstance(named, list) else ()) if isinstance(one, str))}


_JSON = {"Accept": "application/json"}


def _introspected(address: str, provider: Provider, token: str) -> Mapping[str, Any]:
    """Ask as the client of the connection (RFC 7662, 2.1)."""
    headers = {**_JSON, "Content-Type": "application/x-www-form-urlencoded"}
    form = {"token": token, "token_type_hint": "access_token"}
    if provider.is_secret_posted or not provider.secret:
        form |= {"client_id": provider.client_id, **({"client_secret": provider.secret} if provider.secret else {})}
    else:
        headers["Authorization"] = _basic(provider)
    told = _told(ProviderSession().send("POST", address, headers=headers, body=urlencode(form).encode()))
    # RFC 7662, 2.2: everything but `true` is a token that does not count.
    if told.get("active") is not True:
        raise _refused("The provider says that it is not active.")
    return told


def _basic(provider: Provider) -> str:
    # RFC 6749, 2.3.1: both parts are encoded as in a form.
    credential = f"{quote(provider.client_id, safe='')}:{quote(provider.secret, safe='')}"
    return "Basic " + base64.b64encode(credential.encode()).decode()


def _told(answer: ProviderAnswer) -> Mapping[str, Any]:
    if answer.status_code in (400, 401, 403):
        raise _refused(f"The provider answered {answer.status_code}.")
    if answer.status_code != 200:
        raise UpstreamFailed(LoginCase.UPSTREAM_UNREACHABLE, f"The provider answered {answer.status_code}.")
    try:
        told = answer.json()
    except ValueError as error:
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, "The provider answered no JSON.") from error
    if not isinstance(told, dict):
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, "The provider answered no JSON object.")
    return told


def _refused(detail: str) -> UpstreamFailed:
    return UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, detail)
