"""The provider that sends the mails of a tenant: `/emails/provider`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation
from foundation.api.queries import Projection, projection_of
from identity.api.messages.bodies import ProviderToChange, ProviderToCreate, provider_values
from identity.api.messages.schemas import EMAIL_PROVIDER, PROVIDER_DEFAULT, PROVIDER_FIELDS, PROVIDER_PARAMETERS
from identity.messages.providers import create_provider, delete_provider, provider_of, update_provider
from identity.models import MessageProvider
from identity.models.messages import Channel
from identity.services.failures import Invalid, NotFound

_WIRE_NAMES = {
    "default_from": "default_from_address",
    **{name: f"credentials.{name}" for name in ("smtp_host", "smtp_port", "smtp_user", "smtp_pass")},
    "headers": "settings.headers",
}


class EmailProviderEndpoint(Endpoint):
    """The mail server of the tenant. Without one, the server of the platform sends the mails."""

    not_found_code = "inexistent_email_provider"
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "get_email_provider",
            "Read the mail provider, without the password",
            ("read:email_provider",),
            200,
            EMAIL_PROVIDER,
            parameters=PROVIDER_PARAMETERS,
            refuses=(404,),
        ),
        "create": Operation(
            "create_email_provider",
            "Send mails through a mail server of the tenant",
            ("create:email_provider",),
            201,
            EMAIL_PROVIDER,
            ProviderToCreate,
            refuses=(409,),
        ),
        "partial_update": Operation(
            "update_email_provider",
            "Change the mail server; credentials that the body does not name are kept",
            ("update:email_provider",),
            200,
            EMAIL_PROVIDER,
            ProviderToChange,
            refuses=(404,),
        ),
        "destroy": Operation(
            "delete_email_provider", "Delete the mail provider; the platform sends the mails again", ("delete:email_provider",), 204
        ),
    }

    def list(self, request: Request) -> Response:
        project = projection_of(request.query_params, PROVIDER_FIELDS)
        row = provider_of(self.tenant_id, Channel.EMAIL)
        if row is None:
            raise NotFound("The tenant has no mail provider.")
        shown = project if request.query_params.get("fields") else Projection(frozenset(PROVIDER_DEFAULT))
        return Response(shown(document_of(row)))

    def create(self, request: Request) -> Response:
        body = self.body_of(request, ProviderToCreate)
        with _wire_names():
            row = create_provider(tenant_id=self.tenant_id, channel=Channel.EMAIL, name=MessageProvider.Name.SMTP, **provider_values(body))
        return Response(document_of(row), status=201)

    def partial_update(self, request: Request) -> Response:
        body = self.body_of(request, ProviderToChange)
        with _wire_names():
            row = update_provider(tenant_id=self.tenant_id, channel=Channel.EMAIL, **provider_values(body))
        return Response(document_of(row))

    def destroy(self, request: Request) -> Response:
        delete_provider(tenant_id=self.tenant_id, channel=Channel.EMAIL)
        return Response(status=204)


def document_of(row: MessageProvider) -> dict[str, Any]:
    """Return a provider with the field names of the API and without secrets."""
    own = row.settings
    return {
        "name": row.name,
        "enabled": row.is_enabled,
        "default_from_address": row.default_from,
        "credentials": {name: own[name] for name in ("smtp_host", "smtp_port", "smtp_user") if name in own},
        "settings": {"headers": own["headers"]} if own.get("headers") else {},
    }


@contextmanager
def _wire_names() -> Iterator[None]:
    try:
        yield
    except Invalid as error:
        raise Invalid({_WIRE_NAMES.get(name, name): texts for name, texts in error.errors.items()}) from error
