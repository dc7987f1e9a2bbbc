"""`urn:okta:params:oauth:grant-type:webauthn`: an application logs a user in, or signs a user up, with a passkey (contract 2.3)."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from authapi.accounts.attempts import LoginRefused, Refusal
from authapi.accounts.passkey_login import KnownPerson, PasskeyAttempt, log_in_with_passkey
from authapi.accounts.passkey_sign_up import PasskeySignUp, sign_up_with_passkey
from authapi.accounts.sign_up import Reason, SignUpRefused
from authapi.factors.kinds import PASSKEY_METHODS
from authapi.factors.passkey_ceremonies import Opened, SignUpWish, find_ceremony, open_ceremony
from authapi.factors.relying_party import party_of
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.passkeys import PasskeyCase
from authapi.failures.requests import RequestCase
from authapi.grants.password import check_entitlement, issued, person_behind
from authapi.grants.user_grant import Granted, UserGrant
from authapi.login.connections import client_connections
from authapi.login.organizations import check_membership, connections_within, joins_on_login, wished_organization
from authapi.models import Client, PasskeyCeremony
from authapi.token_request import TokenRequest
from authapi.tokens.refresh_tokens import Sender
from identity.factors.ceremonies import CeremonyRefused, RelyingParty
from identity.hosts import HostMatch
from identity.models import Connection
from identity.services.memberships import add_members

_GRANT_CLAIM = "passkey"
_ANDROID = "android:apk-key-hash:"
_FINGERPRINT = re.compile(r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){31}")
_REFUSALS = {
    Refusal.USER_BLOCKED: LoginCase.USER_BLOCKED,
    Refusal.SUSPICIOUS_ADDRESS: LoginCase.SUSPICIOUS_ADDRESS,
}
_SIGN_UP_REFUSALS = {
    Reason.DISABLED: PasskeyCase.SIGN_UP_DISABLED,
    Reason.SUSPICIOUS_ADDRESS: PasskeyCase.TOO_MANY_SIGN_UPS,
}


class PasskeyGrant(UserGrant):
    """Logs a user in by the `auth_session` of a challenge, or creates the account of a registration. Each `auth_session` works once."""

    name = "urn:okta:params:oauth:grant-type:webauthn"

    def granted(self, request: TokenRequest, client: Client) -> Granted:
        session, answer = request.required("auth_session"), _answer(request)
        party = app_party(request.host, client)
        row = find_ceremony(client, session, relying_party=party.id)
        if row is None or row.connection is None:
            raise RequestRefused(PasskeyCase.UNKNOWN_SESSION)
        connection = _connection(request, client, row)
        # Check the permissions of the client before the `auth_session` is used up.
        check_entitlement(request, client)
        opened = open_ceremony(row)
        if opened is None:
            raise RequestRefused(PasskeyCase.UNKNOWN_SESSION)
        sender = person_behind(request, client)
        person = _person(request, _attempt(request, client, connection, opened, party, answer, sender), opened)
        _enter(row, person)
        return issued(
            request,
            client,
            person.connection,
            person.user,
            sender,
            methods=PASSKEY_METHODS,
            grant=_GRANT_CLAIM,
            organization=row.organization,
        )


def app_party(host: HostMatch, client: Client) -> RelyingParty:
    """Return the domain of a host, with the origins of the client's Android apps.

    The origin of an Android app contains the fingerprint of its signing key, which the settings of the client list.
    Web pages must have the origin of the host. An app on an Apple system also sends the origin of the host, because the host is the
    associated domain of the app.
    """
    mobile = client.settings.get("mobile")
    android = mobile.get("android") if isinstance(mobile, dict) else None
    fingerprints = (android.get("sha256_cert_fingerprints") if isinstance(android, dict) else None) or ()
    return party_of(host, apps=tuple(_android_origin(str(one)) for one in fingerprints if _FINGERPRINT.fullmatch(str(one))))


def _android_origin(fingerprint: str) -> str:
    digest = bytes.fromhex(fingerprint.replace(":", ""))
    return _ANDROID + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _answer(request: TokenRequest) -> Mapping[str, Any]:
    answer = request.form.get("authn_response")
    if answer is None:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="authn_response")
    if not isinstance(answer, dict):
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The parameter authn_response must be an object.")
    return answer


def _connection(request: TokenRequest, client: Client, row: PasskeyCeremony) -> Connection:
    """Return the current connection of a ceremony. Raises `RequestRefused` if the request names another connection."""
    enabled = client_connections(client)
    named = request.text("organization")
    if row.organization is not None:
        enabled = connections_within(row.organization, enabled)
    if named is not None and wished_organization(client, named) != row.organization:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The organization differs from the organization of the auth_session.")
    connection = next((one for one in enabled if one.pk == row.connection_id), None)
    realm = request.text("realm")
    if connection is None or (realm is not None and realm not in (connection.name, *connection.realms)):
        raise RequestRefused(LoginCase.UNKNOWN_REALM)
    return connection


def _attempt(
    request: TokenRequest,
    client: Client,
    connection: Connection,
    opened: Opened,
    party: RelyingParty,
    answer: Mapping[str, Any],
    sender: Sender,
) -> PasskeyAttempt:
    return PasskeyAttempt(
        tenant_id=request.host.tenant_id,
        client=client,
        connections=(connection,),
        party=party,
        answer=answer,
        challenge=opened.challenge,
        ip=sender.ip,
        user_agent=sender.user_agent,
    )


def _person(request: TokenRequest, attempt: PasskeyAttempt, opened: Opened) -> KnownPerson:
    try:
        if opened.sign_up is None:
            return log_in_with_passkey(attempt)
        return _signed_up(request, attempt, opened.sign_up)
    except LoginRefused as refused:
        raise RequestRefused(_REFUSALS.get(refused.reason, PasskeyCase.WRONG_PASSKEY), rate=refused.rate) from refused
    except CeremonyRefused as refused:
        raise RequestRefused(PasskeyCase.WRONG_PASSKEY) from refused
    except SignUpRefused as refused:
        if refused.reason is Reason.INVALID:
            raise odd_profile(refused.fields) from refused
        raise RequestRefused(_SIGN_UP_REFUSALS.get(refused.reason, PasskeyCase.REFUSED_SIGN_UP), rate=refused.rate) from refused


def odd_profile(fields: Mapping[str, str]) -> RequestRefused:
    """Return the refusal of a profile. Its text contains the first invalid member and the error of this member."""
    name, text = next(iter(fields.items()))
    return RequestRefused(PasskeyCase.ODD_PROFILE, reason=f"{name}: {text}")


def _signed_up(request: TokenRequest, attempt: PasskeyAttempt, wish: SignUpWish) -> KnownPerson:
    connection = attempt.connections[0]
    return KnownPerson(sign_up_with_passkey(PasskeySignUp(request.host, attempt, connection, wish)), connection)


def _enter(row: PasskeyCeremony, person: KnownPerson) -> None:
    """Check or create the user's membership in the organization of a login. Raises `RequestRefused` if the user cannot become a member."""
    organization = row.organization
    if organization is None:
        return
    if joins_on_login(organization, person.connection):
        add_members(tenant_id=organization.tenant_id, organization_id=organization.pk, user_ids=[person.user.user_id])
    check_membership(organization, person.user)
