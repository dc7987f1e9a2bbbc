"""`POST /oauth/ro`: exchanges a password, a code or a device token for tokens of the user."""

from __future__ import annotations

from collections.abc import Sequence

from oauth2_provider.settings import oauth2_settings

from authapi.accounts.attempts import Refusal
from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.failures.oauth import OAuthCase
from authapi.grants.password import check_organization, issued, logged_in
from authapi.grants.user_grant import sender_of
from authapi.login.connections import takes_passwords
from authapi.models import Client
from authapi.protocols.legacy import one_time_codes
from authapi.protocols.legacy.device_tokens import user_of_device
from authapi.protocols.legacy.opting_in import DEVICE_KEY, PASSWORD, require_grant
from authapi.protocols.legacy.policy import check_without_pages
from authapi.protocols.legacy.requests import JWT_BEARER, LegacyRequest, Reply, named_client, named_connection
from authapi.protocols.legacy.token_replies import for_profile, sender_of_device, token_reply
from identity.models import Connection, User

_PASSWORD_GRANT = "password"  # noqa: S105  (the name of a grant)
# RFC 8176: proof of possession of a hardware-secured key.
_DEVICE_METHOD = "hwk"
CASES = {
    Refusal.WRONG_CREDENTIALS: LegacyCase.WRONG_CREDENTIALS,
    Refusal.USER_BLOCKED: LegacyCase.USER_BLOCKED,
    Refusal.TOO_MANY_ATTEMPTS: LegacyCase.ACCOUNT_BLOCKED,
    Refusal.PASSWORD_LEAKED: LegacyCase.PASSWORD_LEAKED,
    Refusal.TOO_MANY_LOGINS: LegacyCase.TOO_MANY_LOGINS,
    Refusal.SUSPICIOUS_ADDRESS: LegacyCase.SUSPICIOUS_ADDRESS,
}


def resource_owner(request: LegacyRequest) -> Reply:
    """Return tokens for the user of a password, a code or a device token. Raises `RequestRefused`."""
    client = named_client(request)
    match request.needed("grant_type"):
        case "password":
            return _by_password(request, client)
        case grant if grant == JWT_BEARER:
            return _by_device(request, client)
        case _:
            raise RequestRefused(LegacyCase.WRONG_GRANT_TYPE, grants=f"{_PASSWORD_GRANT} or {JWT_BEARER}")


def _by_password(request: LegacyRequest, client: Client) -> Reply:
    if oauth2_settings.COMPLIANT_BCP_RFC9700_PASSWORD_GRANT:
        raise RequestRefused(OAuthCase.UNSUPPORTED_GRANT, grant=_PASSWORD_GRANT)
    require_grant(client, PASSWORD)
    username, password = request.needed("username"), request.needed("password")
    name = request.needed("connection")
    check_organization(request, client)
    if (passwordless := one_time_codes.connection_of_codes(client, name)) is not None:
        proven = one_time_codes.log_in(request, client, passwordless, username, password)
        return _answered(request, client, passwordless, proven.user, methods=proven.methods)
    connection = named_connection(request, client, name)
    if not takes_passwords(connection):
        raise RequestRefused(LegacyCase.WRONG_STRATEGY)
    user = logged_in(request, client, connection, username, password, sender_of(request), cases=CASES)
    return _answered(request, client, connection, user)


def _by_device(request: LegacyRequest, client: Client) -> Reply:
    require_grant(client, DEVICE_KEY)
    device, token = request.needed("device"), request.needed("id_token")
    check_organization(request, client)
    user = user_of_device(request, client, device=device, token=token)
    return _answered(request, client, user.connection, user, methods=(_DEVICE_METHOD,))


def _answered(request: LegacyRequest, client: Client, connection: Connection, user: User, *, methods: Sequence[str] = ("pwd",)) -> Reply:
    check_without_pages(client, user)
    sender = sender_of_device(request, sender_of(request))
    return token_reply(request, client, issued(for_profile(request), client, connection, user, sender, methods=methods))
