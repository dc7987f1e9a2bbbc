"""The link from the last page of a task back to an application. Uses only registered URLs, never a URL from a request."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.http import HttpRequest

from authapi.clients.origins import web_origin_of
from authapi.login.browser import with_parameters
from authapi.models import AccountTicket, Client, LoginTransaction
from authapi.tenant_settings import sign_in_settings
from authapi.upstream.authentication_requests import request_for
from foundation.secrets.random_secrets import digest_of
from identity.hosts import HostMatch

ACCOUNT_PATH = "/account"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_LONGEST_HANDLE = _LONGEST_CLIENT_ID = 64


@dataclass(frozen=True)
class ApplicationLink:
    """A URL of an application, the name of the application, and whether the URL begins a login."""

    address: str
    name: str = ""
    begins_login: bool = False


def application_link(client: Client | None, *, host: HostMatch) -> ApplicationLink | None:
    """Return the link back to a client, otherwise a link to the tenant's default URL; None if neither URL is registered.

    A URL that begins a login contains the issuer, so that a client with several providers can select this service (OpenID Connect Core
    1.0, 4).
    """
    if client is not None and client.is_account_page:
        is_open = sign_in_settings(host.tenant_id).account_page.enabled
        return ApplicationLink(f"{host.issuer.rstrip('/')}{ACCOUNT_PATH}", client.name, begins_login=True) if is_open else None
    if client is not None and client.revoked_at is None:
        if address := login_address(client):
            return ApplicationLink(with_parameters(address, {"iss": host.issuer}), client.name, begins_login=True)
        if origin := _origin(client):
            return ApplicationLink(f"{origin}/", client.name)
    fallback = sign_in_settings(host.tenant_id).default_redirection_uri
    return ApplicationLink(fallback) if fallback.startswith("https://") else None


def login_address(client: Client | None) -> str:
    """Return the registered URL at which a login of the client can begin (OpenID Connect Core 1.0, 4); empty if no URL is registered."""
    address = client.settings.get("initiate_login_uri") if client else None
    return address if isinstance(address, str) and address.startswith("https://") else ""


def client_behind(request: HttpRequest, host: HostMatch) -> Client | None:
    """Find the client of a refused request: by the handle of a login, by the `state` of a login at a provider, or by the client id.

    The client is found even if the login has expired. The values come from the request and are unverified, so use the client only to find a
    registered URL of the tenant.
    """
    sent = request.POST if request.method == "POST" else request.GET
    handle = sent.get("state", "")
    if 0 < len(handle) <= _LONGEST_HANDLE:
        row = LoginTransaction.objects.of(host.tenant_id).select_related("client").filter(digest=digest_of(handle)).first()
        if row is not None:
            return row.client
    if (answered := request_for(host.tenant_id, handle)) is not None:
        return answered[0].client
    in_path = request.resolver_match.kwargs.get("client_id", "") if request.resolver_match else ""
    client_id = in_path or sent.get("client_id", "")
    if not 0 < len(client_id) <= _LONGEST_CLIENT_ID or "\0" in client_id:
        return None
    return Client.objects.of(host.tenant_id).filter(client_id=client_id, revoked_at=None).first()


def client_of_ticket(tenant_id: str, secret: str) -> Client | None:
    """Return the client for which a link was mailed, even if the link is no longer valid."""
    ticket = AccountTicket.objects.of(tenant_id).select_related("client").filter(digest=digest_of(secret)).first()
    return ticket.client if ticket is not None else None


def _origin(client: Client) -> str:
    """Return the first origin that a browser can open: from the client's web origins, otherwise from its callbacks."""
    addresses = (*(client.settings.get("web_origins") or ()), *client.redirect_uris.split())
    return next((origin for address in addresses if (origin := _opened_origin(client, address))), "")


def _opened_origin(client: Client, address: str) -> str:
    if "*" in address or not (origin := web_origin_of(address)):
        return ""
    # Skip callbacks on loopback: a native application listens at its callback only during a login (RFC 8252, 7.3).
    return "" if client.app_type == "native" and urlsplit(origin).hostname in _LOOPBACK else origin
