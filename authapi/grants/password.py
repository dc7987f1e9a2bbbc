"""The grant `password`, and its variant with a realm: the client sends the name and password that the user typed (RFC 6749, 4.3).

RFC 9700, 2.4 advises against this grant. The toolkit's setting `COMPLIANT_BCP_RFC9700_PASSWORD_GRANT` disables the grant for all clients.
If the grant is enabled, a client opts in by its grant types.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping

from django.utils import timezone
from oauth2_provider.settings import oauth2_settings

from authapi.accounts.attempts import Attempt, LoginRefused, Refusal
from authapi.accounts.password_login import log_in
from authapi.factors.transactions import FirstProof
from authapi.failures import Case, RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.grants.entitlements import user_entitlement
from authapi.grants.factor_demand import demand_second_factor
from authapi.grants.targets import audience_of
from authapi.grants.user_grant import Granted, UserGrant, access_of, sender_of
from authapi.login.connections import database_connections, default_directory, named_database
from authapi.models import Client
from authapi.token_request import TokenRequest
from authapi.tokens.bindings import binding, bound_to
from authapi.tokens.refresh_tokens import Sender, issue_refresh_token
from authapi.tokens.user_tokens import UserIssue
from foundation.database.transactions import unit_of_work
from identity.models import Connection, Organization, User

REALM_GRANT = "http://auth0.com/oauth/grant-type/password-realm"
FORWARDED_FOR = "auth0-forwarded-for"
_GRANT_CLAIM = "password"
_CASES = {
    Refusal.WRONG_CREDENTIALS: LoginCase.WRONG_CREDENTIALS,
    Refusal.USER_BLOCKED: LoginCase.USER_BLOCKED,
    Refusal.TOO_MANY_ATTEMPTS: LoginCase.ACCOUNT_BLOCKED,
    Refusal.PASSWORD_LEAKED: LoginCase.PASSWORD_LEAKED,
    Refusal.TOO_MANY_LOGINS: LoginCase.TOO_MANY_LOGINS,
    Refusal.SUSPICIOUS_ADDRESS: LoginCase.SUSPICIOUS_ADDRESS,
}


class PasswordGrant(UserGrant):
    """Logs a user in at the tenant's default connection (`default_directory`)."""

    name = "password"

    def granted(self, request: TokenRequest, client: Client) -> Granted:
        if oauth2_settings.COMPLIANT_BCP_RFC9700_PASSWORD_GRANT:
            raise RequestRefused(OAuthCase.UNSUPPORTED_GRANT, grant=self.name)
        username, password = request.required("username"), request.required("password")
        connection = self.connection(request, client)
        check_organization(request, client)
        check_entitlement(request, client)
        sender = person_behind(request, client)
        user = logged_in(request, client, connection, username, password, sender)
        return issued(request, client, connection, user, sender)

    def connection(self, request: TokenRequest, client: Client) -> Connection:
        connection = default_directory(request.host.tenant_id)
        if connection is None or client.client_id not in connection.enabled_clients:
            raise RequestRefused(LoginCase.NO_DEFAULT_DIRECTORY)
        return connection


class PasswordRealmGrant(PasswordGrant):
    """Logs a user in at the connection that the request names as `realm`."""

    name = REALM_GRANT

    def connection(self, request: TokenRequest, client: Client) -> Connection:
        named = named_database(request.host.tenant_id, request.required("realm"))
        if named is None or named not in database_connections(client):
            raise RequestRefused(LoginCase.UNKNOWN_REALM)
        return named


def check_organization(request: TokenRequest, client: Client) -> None:
    """Raise `RequestRefused` if the login is for an organization: this grant cannot check whether the user is a member."""
    if request.text("organization") is not None:
        raise RequestRefused(LoginCase.ORGANIZATION_NOT_ALLOWED)
    if client.settings.get("organization_usage") == "require":
        raise RequestRefused(LoginCase.ORGANIZATION_REQUIRED)


def check_entitlement(request: TokenRequest, client: Client) -> None:
    """Raise `RequestRefused` if the client may not get the requested tokens for any user, or if a required key or certificate is missing.

    Call this function before the user logs in. A request that is refused here causes no password hash, uses up no code, and writes no line
    to the sign-in log.
    """
    asked = user_entitlement(host=request.host, client=client, user=None, audience=audience_of(request), scope=request.text("scope"))
    bound_to(binding(request), client=client, resource=asked.resource)


def logged_in(
    request: TokenRequest,
    client: Client,
    connection: Connection,
    username: str,
    password: str,
    sender: Sender,
    cases: Mapping[Refusal, Case] = _CASES,
) -> User:
    """Return the user with this name and password. Raises `RequestRefused` if the login is refused.

    `cases` gives the error of the token endpoint for each reason of a refusal.
    """
    attempt = Attempt(
        tenant_id=request.host.tenant_id,
        connection=connection,
        identifier=username,
        password=password,
        ip=sender.ip,
        user_agent=sender.user_agent,
        client=client,
        address=request.host.issuer.rstrip("/"),
    )
    try:
        return log_in(attempt)
    except LoginRefused as refused:
        raise RequestRefused(cases[refused.reason], rate=refused.rate) from refused


def issued(
    request: TokenRequest,
    client: Client,
    connection: Connection,
    user: User,
    sender: Sender,
    *,
    methods: Iterable[str] = ("pwd",),
    grant: str = _GRANT_CLAIM,
    organization: Organization | None = None,
) -> Granted:
    """Return the tokens of a user who has just authenticated to the client. The login has no browser and thus no session.

    Raises `RequestRefused` with an `mfa_token` if a second factor is required.
    """
    proof = FirstProof(
        client=client,
        user=user,
        connection=connection,
        organization=organization,
        methods=tuple(methods),
        grant=grant,
        audience=audience_of(request),
        scope=request.text("scope"),
        key=request.key,
        ip=sender.ip,
    )
    demand_second_factor(proof, user_agent=sender.user_agent)
    return tokens_for(request, proof, sender)


@unit_of_work
def tokens_for(request: TokenRequest, proof: FirstProof, sender: Sender) -> Granted:
    """Return the tokens for a login that needs no further proof."""
    client, user, organization = proof.client, proof.user, proof.organization
    asked = {"audience": proof.audience, "scope": proof.scope}
    granted = user_entitlement(host=request.host, client=client, user=user, organization=organization, **asked)
    now = timezone.now()
    login = UserIssue(
        host=request.host,
        client=client,
        user=user,
        connection=proof.connection,
        audience=granted.audience,
        scopes=granted.scopes,
        # There is no browser, so there is no session.
        session=None,
        organization=organization,
        auth_time=now,
        methods=[{"name": name, "timestamp": now.isoformat()} for name in proof.methods],
        nonce="",
        lineage=uuid.uuid4(),
        confirmation=binding(request),
        grant=proof.grant,
    )
    login, access, until = access_of(login, granted)
    refresh_token = issue_refresh_token(login, access=access, until=until, sender=sender) if login.wants_refresh_token else None
    return Granted(login, access, refresh_token)


def person_behind(request: TokenRequest, client: Client) -> Sender:
    """Return the IP address and user agent of the user.

    A trusted, authenticated client sends the IP address of the user in a header. This IP address takes precedence over the IP address from
    which the request comes (contract, 9.9).
    """
    sender = sender_of(request)
    said = request.headers.get(FORWARDED_FOR, "").strip()
    is_trusted = not client.is_public and bool(client.settings.get("is_token_endpoint_ip_header_trusted"))
    return Sender(ip=said, user_agent=sender.user_agent) if said and is_trusted else sender
