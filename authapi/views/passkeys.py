"""`POST /passkey/challenge` and `/passkey/register`: an application gets the options to use or create a passkey (contract 2.11).

The endpoints do not reveal whether an account exists. A challenge lists no key, and a sign-up checks the name only after the passkey is
created.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.conf import settings

from authapi import client_auth
from authapi.accounts.sign_up import profile_problems
from authapi.accounts.sign_up_rules import IDENTIFIERS, NAMES
from authapi.edge.addresses import customer_keys
from authapi.edge.bodies import MalformedBody, parse_body
from authapi.edge.buckets import Bucket
from authapi.edge.rate_figures import PASSKEYS_OF_CLIENT, PASSKEYS_OF_PLACE, PASSKEYS_OF_TENANT
from authapi.edge.throttling import Rate
from authapi.factors.passkey_ceremonies import Begun, SignUpWish, begin_ceremony
from authapi.factors.passkey_options import passkey_connections, takes_passkey_sign_ups
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.failures.passkeys import PasskeyCase
from authapi.failures.requests import RequestCase
from authapi.grants.passkeys import PasskeyGrant, app_party, odd_profile
from authapi.grants.password import person_behind
from authapi.login.connections import client_connections
from authapi.login.organizations import connections_within, joins_on_login, usage_of, wished_organization
from authapi.models import Client
from authapi.tenant_settings import sign_in_settings
from authapi.token_request import TokenRequest
from authapi.views.chain import Answer, Call, hot_endpoint, json_answer
from authapi.views.client_words import in_words_of_client
from foundation.ids import new_hex_id
from foundation.tenancy import tenant_bound
from identity.factors import ceremonies
from identity.factors.ceremonies import Account
from identity.factors.user_factors import handle_of
from identity.models import Connection, Organization
from identity.services.users import user_id_of

_FRESH = {"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store", "Pragma": "no-cache"}


def _challenge(request: TokenRequest) -> Answer:
    client = _client(request)
    connection, organization = _where(request, client)
    party = app_party(request.host, client)
    begun = begin_ceremony(client, connection, relying_party=party.id, organization=organization)
    return _told(begun, ceremonies.use_options(party, begun.challenge))


def _register(request: TokenRequest) -> Answer:
    client = _client(request)
    connection, organization = _where(request, client)
    if not takes_passkey_sign_ups(connection):
        raise RequestRefused(PasskeyCase.SIGN_UP_DISABLED)
    if organization is not None and not joins_on_login(organization, connection):
        raise RequestRefused(PasskeyCase.CLOSED_ORGANIZATION)
    profile = _profile(request, connection)
    party, wish = app_party(request.host, client), SignUpWish(new_hex_id(), profile)
    begun = begin_ceremony(client, connection, relying_party=party.id, organization=organization, sign_up=wish)
    named = next(str(profile[name]) for name in IDENTIFIERS if name in profile)
    account = Account(handle_of(client.tenant_id, user_id_of(connection, wish.identifier)), named, str(profile.get("name", "")))
    return _told(begun, ceremonies.registration_options(party, account, begun.challenge))


def _client(request: TokenRequest) -> Client:
    client = client_auth.authenticate(request)
    if not client.is_first_party:
        raise RequestRefused(PasskeyCase.THIRD_PARTY)
    if not client.allows_grant_type(PasskeyGrant.name):
        raise RequestRefused(OAuthCase.GRANT_NOT_ALLOWED, grant=PasskeyGrant.name)
    sender = person_behind(request, client)
    # The limit for one IP address is only for public clients: a confidential client may send requests of many users from one IP address.
    for key in customer_keys(sender.ip, settings.TRUSTED_PROXIES) if client.is_public else ():
        _count(PASSKEYS_OF_PLACE.times(key.factor), client.tenant_id, key.name)
    _count(PASSKEYS_OF_CLIENT, client.tenant_id, client.client_id)
    _count(PASSKEYS_OF_TENANT, client.tenant_id)
    return client


def _count(bucket: Bucket, *owner: str) -> None:
    if not bucket.takes(*owner):
        raise RequestRefused(PasskeyCase.TOO_MANY, rate=Rate.of_empty(bucket))


def _where(request: TokenRequest, client: Client) -> tuple[Connection, Organization | None]:
    """Return the connection and the organization of a request. Raises `RequestRefused`."""
    named = request.text("organization") or ""
    if not named and usage_of(client) == "require":
        # No page can ask for the organization, so the request must name it.
        raise RequestRefused(LoginCase.ORGANIZATION_REQUIRED)
    organization = wished_organization(client, named)
    enabled = client_connections(client)
    if organization is not None:
        enabled = connections_within(organization, enabled)
    realm = request.text("realm") or sign_in_settings(client.tenant_id).default_directory
    if not realm:
        raise RequestRefused(LoginCase.NO_DEFAULT_DIRECTORY)
    found = next((one for one in enabled if one.is_database and realm in (one.name, *one.realms)), None)
    if found is None:
        raise RequestRefused(LoginCase.UNKNOWN_REALM)
    if not passkey_connections([found]):
        raise RequestRefused(PasskeyCase.NO_PASSKEYS)
    return found, organization


def _profile(request: TokenRequest, connection: Connection) -> dict[str, Any]:
    """Return the profile that a request sends, checked against the rules of the connection. Raises `RequestRefused`."""
    given = request.form.get("user_profile")
    if given is None:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="user_profile")
    if not isinstance(given, dict):
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The parameter `user_profile` must be an object.")
    known: Mapping[str, Any] = {**given, "user_metadata": given.get("user_metadata", request.form.get("user_metadata"))}
    profile = {name: known[name] for name in (*IDENTIFIERS, *NAMES, "user_metadata") if known.get(name) not in (None, "")}
    if problems := profile_problems(connection, profile):
        raise odd_profile(problems)
    if not any(name in profile for name in IDENTIFIERS):
        raise RequestRefused(PasskeyCase.ODD_PROFILE, reason="user_profile has no identifier.")
    return profile


def _told(begun: Begun, options: dict[str, Any]) -> Answer:
    return json_answer({"auth_session": begun.auth_session, "authn_params_public_key": options}, headers=_FRESH)


def _endpoint(work: Callable[[TokenRequest], Answer], call: Call) -> Answer:
    try:
        form = parse_body(call.headers.get("content-type", ""), call.body)
    except MalformedBody as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=str(error)) from error
    request = TokenRequest(host=call.host, address=call.address, headers=call.headers, form=form, charge=call.charge)
    with tenant_bound(call.host.tenant_id):
        return in_words_of_client(work, request)


passkey_challenge = hot_endpoint(partial(_endpoint, _challenge), name="passkey_challenge", methods=("POST",))
passkey_register = hot_endpoint(partial(_endpoint, _register), name="passkey_register", methods=("POST",))
