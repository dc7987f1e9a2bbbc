"""The two addresses of an invitation: at the application, and the one of the mail, which proves the mailbox to this service first.

The application puts its address into its own logs, so the ticket in it proves nothing. The link of the mail leads to a page here,
which leaves a mark in the browser and goes on to the application (decision: docs/adr/0102).
"""

from __future__ import annotations

from django.conf import settings

from authapi.login.browser import with_parameters
from authapi.models import Client, Invitation
from authapi.tenant_settings import sign_in_settings
from foundation.secrets.random_secrets import digest_of
from identity.hosts import default_address

# Where the mail leads; the page of a login has its own address (`authapi.login.flow.PAGES`).
MAIL_PATH = "/u/invitation/open"


def login_route(client: Client) -> str:
    """Return where logins at a client begin: its own address, else that of the tenant; empty where neither is set."""
    for address in (client.settings.get("initiate_login_uri"), sign_in_settings(client.tenant_id).default_redirection_uri):
        if isinstance(address, str) and address.startswith(("https://", "http://") if settings.INSECURE_HTTP else "https://"):
            return address
    return ""


def application_address(invitation: Invitation) -> str:
    """Return the address that is handed out: the application's, with what it has to send to `/authorize`; empty without one."""
    route, ticket = login_route(invitation.client), invitation.ticket
    if not (route and ticket):
        return ""
    organization = invitation.organization
    named = {"invitation": ticket, "organization": organization.pk, "organization_name": organization.name}
    return with_parameters(route, named)


def mail_address(invitation: Invitation, secret: str, *, asked_at: str) -> str:
    """Return the link of a mail at the tenant's domain, at `asked_at` where plain http is served on loopback; empty without a domain."""
    base = (settings.INSECURE_HTTP and asked_at) or default_address(invitation.tenant_id)
    return f"{base}{MAIL_PATH}?ticket={secret}" if base else ""


def mailed_invitation(*, tenant_id: str, secret: str) -> Invitation | None:
    """Return the invitation whose last mail has this link, whatever has become of it."""
    rows = Invitation.objects.of(tenant_id).select_related("client", "organization")
    return rows.filter(mail_digest=digest_of(secret)).first() if secret else None
