"""The section that shows users the logins of their account. Here users link another account, or unlink a linked account."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils.translation import gettext as _

from authapi import upstream
from authapi.accounts.passwordless.addresses import channel_of
from authapi.accounts.self_service.identities import linked_to, unlink
from authapi.login import flow
from authapi.login.connections import client_connections
from authapi.login.protocol import ProtocolRequest
from authapi.pages import passwordless
from authapi.pages.form_fields import Problem
from authapi.protocols.account.entry import ACCOUNT, state_of
from authapi.protocols.account.visit import Visit
from identity.languages import written_time
from identity.models import Connection, LinkedIdentity
from identity.services.failures import NotFound, ServiceError


def view(visit: Visit) -> HttpResponse:
    """Show the logins, unlink an account, or redirect to the provider of the account that the user wants to link."""
    problems = []
    if visit.is_form:
        if visit.request.POST.get("link"):
            return _link(visit)
        provider, _mark, identifier = visit.chosen("identity").partition("|")
        try:
            unlink(visit.own, provider=provider, identifier=identifier)
            return visit.done("unlinked")
        except NotFound:
            problems = [Problem(_("This account is not linked any more."))]
        except ServiceError:
            problems = [Problem(_("This account cannot be unlinked. Another user may have its email address by now."))]
    primary = {"connection": _name(visit.user.connection), "name": visit.user.email or visit.user.username or visit.user.name}
    context = {
        "primary": primary,
        "linked": [_shown(identity) for identity in linked_to(visit.user)],
        "providers": [{"id": one.name, "label": _label(one)} for one in _providers(visit)],
    }
    return visit.show("identities", context, problems=problems)


def _link(visit: Visit) -> HttpResponse:
    """Begin the login to the account that the user wants to link. On the next page, the user confirms that the accounts are linked."""
    named = visit.chosen("link")
    connection = next((one for one in _providers(visit) if one.name == named), None)
    if connection is None:
        return visit.show("identities", {}, problems=[Problem(_("This login method is no longer available."))])
    state = state_of(visit.section.name, session=visit.session, link=connection.name)
    return flow.begin(visit.request, ACCOUNT, ProtocolRequest(visit.host, visit.client, state))


def _providers(visit: Visit) -> list[Connection]:
    return [one for one in client_connections(visit.client) if not one.is_database]


def _shown(identity: LinkedIdentity) -> dict[str, str]:
    known = identity.profile_data
    name = next((known[field] for field in ("email", "phone_number", "name", "nickname") if known.get(field)), "")
    return {"id": str(identity), "connection": _name(identity.connection), "name": str(name), "since": written_time(identity.created_at)}


def _label(connection: Connection) -> str:
    """Return the label of a login method.

    The name of a passwordless connection, such as `sms`, is not shown, because users do not understand it.
    """
    if channel_of(connection) is not None and not connection.display_name:
        return passwordless.label_of(connection)
    return _("Continue with %(provider)s") % {"provider": _name(connection)}


def _name(connection: Connection) -> str:
    return upstream.label_of(connection)
