"""The mail templates of a tenant: `/email-templates`. Texts for one language are edited in the admin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation
from foundation.api.refusals import invalid_body, not_supported
from identity.api.messages.bodies import NAMES, TemplateToChange, TemplateToSet, template_values
from identity.api.messages.schemas import EMAIL_TEMPLATE
from identity.messages.catalogue import KINDS, Kind
from identity.messages.templates import create_template, save_template, template_at
from identity.models import MessageTemplate
from identity.services.failures import Invalid, NotFound


class EmailTemplateEndpoint(Endpoint):
    """One Liquid template for each kind of mail."""

    not_found_code = "inexistent_email_template"
    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "create_email_template",
            "Create a mail template",
            ("create:email_templates",),
            201,
            EMAIL_TEMPLATE,
            TemplateToSet,
            refuses=(409,),
        ),
        "retrieve": Operation("get_email_template", "Read a mail template", ("read:email_templates",), 200, EMAIL_TEMPLATE, refuses=(404,)),
        "update": Operation(
            "set_email_template",
            "Create or replace a mail template",
            ("update:email_templates",),
            200,
            EMAIL_TEMPLATE,
            TemplateToSet,
            refuses=(404,),
        ),
        "partial_update": Operation(
            "update_email_template",
            "Change parts of a mail template",
            ("update:email_templates",),
            200,
            EMAIL_TEMPLATE,
            TemplateToChange,
            refuses=(404,),
        ),
    }

    def create(self, request: Request) -> Response:
        body = self.body_of(request, TemplateToSet)
        kind = _sent(_public(body["template"]))
        with _wire_names():
            row = create_template(tenant_id=self.tenant_id, name=kind.name, values=template_values(body, is_whole=True))
        return Response(document_of(row), status=201)

    def retrieve(self, request: Request, template_name: str) -> Response:
        return Response(document_of(self._at(template_name)))

    def update(self, request: Request, template_name: str) -> Response:
        body = self.body_of(request, TemplateToSet)
        kind = _sent(_named(template_name, body))
        with _wire_names():
            row = save_template(tenant_id=self.tenant_id, name=kind.name, values=template_values(body, is_whole=True))
        return Response(document_of(row))

    def partial_update(self, request: Request, template_name: str) -> Response:
        body = self.body_of(request, TemplateToChange)
        _sent(_named(template_name, body))
        row = self._at(template_name)
        with _wire_names():
            row = save_template(tenant_id=self.tenant_id, name=row.name, values=template_values(body, is_whole=False))
        return Response(document_of(row))

    def _at(self, name: str) -> MessageTemplate:
        kind = _public(name)
        row = template_at(self.tenant_id, kind)
        if row is None:
            said = "The tenant has no text of its own for this mail." if kind.is_sent else _unsent(kind)
            raise NotFound(said)
        return row


def document_of(row: MessageTemplate) -> dict[str, Any]:
    """Return a template with the field names of the API."""
    return {
        "template": row.name,
        "body": row.body or None,
        "from": row.from_address or None,
        "resultUrl": row.result_url or None,
        "subject": row.subject or None,
        "syntax": "liquid",
        "urlLifetimeInSeconds": row.url_lifetime_seconds,
        "includeEmailInRedirect": row.includes_email_in_redirect,
        "enabled": row.is_enabled,
    }


def _public(name: str) -> Kind:
    kind = KINDS.get(name)
    if kind is None or not kind.is_public:
        raise NotFound("There is no such template.")
    return kind


def _named(name: str, body: dict[str, Any]) -> Kind:
    """Return the kind of mail in the path. The body may repeat the name of this kind, but may not contain another name."""
    kind = _public(name)
    if body.get("template", name) != name:
        raise invalid_body(f"Expected {name}, as in the path", "template")
    return kind


def _sent(kind: Kind) -> Kind:
    if not kind.is_sent:
        raise not_supported(_unsent(kind))
    return kind


def _unsent(kind: Kind) -> str:
    return f"The service does not send {kind.name}: {kind.about}"


@contextmanager
def _wire_names() -> Iterator[None]:
    try:
        yield
    except Invalid as error:
        raise Invalid({NAMES.get(name, name): texts for name, texts in error.errors.items()}) from error
