"""`POST /co/authenticate`: checks the password from a login form of another origin. The browser then opens `/authorize` with a ticket.

The application sees the password. In browsers that block third-party cookies, such a login fails, or needs a verification page of the
application (docs/how-to/old-clients.md).
"""

from __future__ import annotations

from authapi.accounts.attempts import Refusal
from authapi.accounts.passwordless.connections import named_passwordless
from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.grants.password import logged_in
from authapi.grants.user_grant import sender_of
from authapi.login.connections import client_connections, database_connections, default_directory
from authapi.login.flow import ProvenUser
from authapi.models import Client
from authapi.protocols.legacy import one_time_codes
from authapi.protocols.legacy.browser_headers import allowed_origin, browser_cookie
from authapi.protocols.legacy.login_tickets import issue_ticket
from authapi.protocols.legacy.opting_in import require_own_forms
from authapi.protocols.legacy.requests import LegacyRequest, Reply, client_named
from authapi.protocols.legacy.resource_owner import CASES
from authapi.protocols.legacy.token_replies import NO_STORE
from identity.models import Connection

_PASSWORD = "password"  # noqa: S105  (the name of a type)
_REALM = "http://auth0.com/oauth/grant-type/password-realm"
_JSON = "application/json"
# If the password is wrong, the response of this endpoint has this error code, which scripts recognize.
_CASES = {**CASES, Refusal.WRONG_CREDENTIALS: LegacyCase.WRONG_CREDENTIALS_OF_FORM}


def authenticate(request: LegacyRequest) -> Reply:
    """Return a ticket for `/authorize`. Raises `RequestRefused`. The page can read the error if its origin is registered."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
        # Only JSON is accepted. A page of another origin can send JSON only after a CORS preflight; it can post a form without a preflight.
        raise RequestRefused(LegacyCase.JSON_NEEDED)
    client = client_named(request.host.tenant_id, request.needed("client_id"))
    if client is None:
        raise RequestRefused(LegacyCase.UNKNOWN_CLIENT)
    origin = allowed_origin(request, client)
    try:
        require_own_forms(client)
        return _ticket(client, _proven(request, client), request, origin)
    except RequestRefused as refused:
        refused.reader = origin
        raise


def _proven(request: LegacyRequest, client: Client) -> ProvenUser:
    kind, username = request.needed("credential_type"), request.needed("username")
    if kind == one_time_codes.CREDENTIAL_TYPE:
        code, connection = request.needed("otp"), named_passwordless(client, request.needed("realm"))
        if connection is None:
            raise RequestRefused(LegacyCase.UNKNOWN_REALM)
        return one_time_codes.log_in(request, client, connection, username, code, is_form=True)
    if kind not in (_PASSWORD, _REALM):
        raise RequestRefused(LegacyCase.WRONG_CREDENTIAL_TYPE, credential_type=kind[:100])
    password = request.needed("password")
    connection = _connection(request, client, None if kind == _PASSWORD else request.needed("realm"))
    user = logged_in(request, client, connection, username, password, sender_of(request), cases=_CASES)
    return ProvenUser(user, connection, methods=("pwd",))


def _connection(request: LegacyRequest, client: Client, realm: str | None) -> Connection:
    """Return the connection that the request names, otherwise the tenant's default connection. Raises `RequestRefused`."""
    if realm is None:
        default = default_directory(request.host.tenant_id)
        found = default if default is not None and default in client_connections(client) else None
    else:
        found = next((one for one in database_connections(client) if realm in (one.name, *one.realms)), None)
    if found is None:
        raise RequestRefused(LegacyCase.UNKNOWN_REALM)
    return found


def _ticket(client: Client, proven: ProvenUser, request: LegacyRequest, origin: str) -> Reply:
    browser, cookie = browser_cookie(request)
    issued = issue_ticket(client, proven, browser=browser, origin=origin)
    members = {"login_ticket": issued.ticket, "co_id": issued.co_id, "co_verifier": issued.verifier}
    return Reply(members, headers={**NO_STORE, **cookie}, reader=origin)
