"""Links that set up a second factor: `/guardian/enrollments/ticket`."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from authapi.accounts.setup_links import create_setup_link
from authapi.api.factors.bodies import ENROLLED_FACTORS, SetupTicket
from authapi.api.factors.schemas import SETUP_TICKET
from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation
from foundation.api.refusals import not_supported
from identity.api.lookups import user_at
from identity.api.requested import base_of


class SetupTicketEndpoint(Endpoint):
    """A link at which a user sets up a second factor. The link opens no session."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "create_guardian_enrollment_ticket",
            "Create a link that sets up a second factor, and mail it on request",
            ("create:guardian_enrollment_tickets",),
            200,
            SETUP_TICKET,
            SetupTicket,
            refuses=(404, 409),
        ),
    }

    def create(self, request: Request) -> Response:
        body = self.body_of(request, SetupTicket)
        factor = body.get("factor", "")
        kind = ENROLLED_FACTORS[factor] if factor else ""
        if kind is None:
            raise not_supported(f"Not supported: this service has no factor {factor}.")
        link = create_setup_link(
            user=user_at(body["user_id"]),
            kind=kind,
            adds=body.get("allow_multiple_enrollments", False),
            is_mailed=body.get("send_mail", False),
            recipient=body.get("email", ""),
            language=body.get("email_locale", ""),
            address=base_of(request),
        )
        return Response({"ticket_id": link.id, "ticket_url": link.address})
