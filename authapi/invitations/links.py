"""The two URLs of an invitation: the URL at the application, and the URL in the mail.

Only the mailed URL proves that the user has the mailbox. Other people can read the URL at the application, for example in the log of the
application, so the ticket in that URL proves nothing. The mailed link leads to a page of this service, which sets a cookie in the browser
and redirects to the application (decision: docs/adr/0102).
"""

from __future__ import annotations

from django.conf import settings

from authapi.login.browser import with_parameters
from authapi.models import Client, Invitation
from authapi.tenant_settings import sign_in_settings
from foundation.secrets.random_secrets import digest_of
from identity.hosts import default_address

# The path of the mailed link. The page that asks about an invitation during a login has another path (`authapi.login.flow.PAGES`).
MAIL_PATH = "/u/invitation/open"


def login_route(client: Client) -> str:
    """Return the URL at which logins to a client start: the URL of the client, otherwise the URL of the tenant.

    Empty if both are missing.
    """
    for address in (client.settings.get("initiate_login_uri"), sign_in_settings(client.tenant_id).default_redirection_uri):
        if isinstance(address, str) and address.startswith(("https://", "http://") if settings.INSECURE_HTTP else "https://"):
            return address
    return ""


def application_address(invitation: Invitation) -> str:
    """Return the URL at the application, with the parameters for `/authorize`. Empty if the application has no login URL."""
    route, ticket = login_route(invitation.client), invitation.ticket
    if not (route and ticket):
        return ""
    organization = invitation.organization
    named = {"invitation": ticket, "organization": organization.pk, "organization_name": organization.name}
    return with_parameters(route, named)


def mail_address(invitation: Invitation, secret: str, *, asked_at: str) -> str:
    """Return the link for the mail. The link is at the default domain of the tenant; it is empty if the tenant has no default domain.

    If the setting `INSECURE_HTTP` is on and `asked_at` is not empty, the link is at `asked_at`.
    """
    base = (settings.INSECURE_HTTP and asked_at) or default_address(invitation.tenant_id)
    return f"{base}{MAIL_PATH}?ticket={secret}" if base else ""


def mailed_invitation(*, tenant_id: str, secret: str) -> Invitation | None:
    """Return the invitation whose latest mail has this link; None for an unknown link. The invitation may be in any state."""
    rows = Invitation.objects.of(tenant_id).select_related("client", "organization")
    return rows.filter(mail_digest=digest_of(secret)).first() if secret else None
