"""Decides where the browser is sent after a user has opened a link of a mail.

The browser is redirected to the return URL of the ticket, with the result in parameters that the upstream system defines. Without such a
URL, a page shows a link to the application.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest, HttpResponse

from authapi.login.browser import form_target, see_other, with_parameters
from authapi.models import Client
from authapi.pages.application_link import ApplicationLink, application_link
from identity.hosts import HostMatch
from identity.models import Organization

# Applications compare these texts of the upstream system. They mean that the link was used before, or that it has expired.
_USED, _EXPIRED = "This URL can be used only once", "Access expired."


@dataclass(frozen=True)
class Outcome:
    """The result of a link. Applications read `message`, so it stays in English."""

    is_success: bool
    message: str


VERIFIED = Outcome(is_success=True, message="Your email was verified. You can continue using the application.")
PASSWORD_CHANGED = Outcome(is_success=True, message="You can now login to the application with the new password.")
USED = Outcome(is_success=False, message=_USED)
EXPIRED = Outcome(is_success=False, message=_EXPIRED)


def result_answer(request: HttpRequest, parameters: Mapping[str, Any], outcome: Outcome, *, email: str) -> HttpResponse | None:
    """Return the redirect to the return URL of the ticket; None if the ticket has no such URL."""
    address = parameters.get("result_url", "")
    if not address:
        return None
    told = {
        **({"email": email} if parameters.get("tells_email") and email else {}),
        "success": "true" if outcome.is_success else "false",
        **({"code": "success"} if outcome.is_success else {}),
        "message": outcome.message,
    }
    answer = see_other(request, with_parameters(address, told))
    answer["Cache-Control"] = "no-store"
    # The URL of the page contains the ticket, so the browser must not send it to the application as the referrer.
    answer["Referrer-Policy"] = "no-referrer"
    return answer


def result_targets(parameters: Mapping[str, Any]) -> list[str]:
    """Return the origins that the `form-action` directive of the Content-Security-Policy must allow."""
    address = parameters.get("result_url", "")
    return [form_target(address)] if address else []


def link_after(client: Client | None, parameters: Mapping[str, Any], *, host: HostMatch) -> ApplicationLink | None:
    """Return the link back to the client of a ticket. If the link begins a login, the link names the organization of the ticket."""
    link = application_link(client, host=host)
    named = parameters.get("organization_id", "")
    if link is None or not link.begins_login or not named:
        return link
    organization = Organization.objects.of(host.tenant_id).filter(pk=named).first()
    if organization is None:
        return link
    shown = {"organization_id": organization.pk, "organization_name": organization.name}
    return replace(link, address=with_parameters(link.address, shown))
