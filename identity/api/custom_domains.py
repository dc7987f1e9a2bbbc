"""Custom domains: `/custom-domains`, `/custom-domains/{id}` and below. The canonical domain is not a custom domain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import PROJECTION
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list, order_of
from foundation.api.queries import projection_of, text_of
from foundation.api.refusals import Refusal, invalid_query
from foundation.timestamps import wire_time
from identity.api.custom_domain_bodies import (
    CERTIFICATE_TYPES,
    CustomDomainToChange,
    CustomDomainToCreate,
    DefaultDomainToSet,
    domain_fields,
)
from identity.api.custom_domain_schemas import (
    CUSTOM_DOMAIN,
    CUSTOM_DOMAIN_FIELDS,
    CUSTOM_DOMAINS,
    DEFAULT_DOMAIN,
    DOMAIN_TEST,
    LIST_PARAMETERS,
)
from identity.hosts import canonical_host
from identity.models import CustomDomain
from identity.services import domain_checks, domains
from identity.services.failures import Invalid, NotFound

_INEXISTENT = "inexistent_custom_domain"
_TYPES = {value: name for name, value in CERTIFICATE_TYPES.items()}


# Deploy tools send a list entry back as a change, and a change with `origin_domain_name` is refused. So a list shows this member only if
# `fields` names it.
_LISTING = Listing("custom_domains", CUSTOM_DOMAIN_FIELDS, only_on_request=("origin_domain_name",))


class CustomDomainEndpoint(Endpoint):
    """The hosts of a tenant in addition to its canonical host."""

    not_found_code = _INEXISTENT
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_custom_domains", "List custom domains", ("read:custom_domains",), 200, CUSTOM_DOMAINS, parameters=LIST_PARAMETERS
        ),
        "create": Operation(
            "create_custom_domain",
            "Add a host; the tenant answers on this host after its TXT record is verified",
            ("create:custom_domains",),
            201,
            CUSTOM_DOMAIN,
            CustomDomainToCreate,
        ),
        "retrieve": Operation(
            "get_custom_domain", "Read a custom domain", ("read:custom_domains",), 200, CUSTOM_DOMAIN, parameters=PROJECTION, refuses=(404,)
        ),
        "partial_update": Operation(
            "update_custom_domain",
            "Change a custom domain; metadata is merged",
            ("update:custom_domains",),
            200,
            CUSTOM_DOMAIN,
            CustomDomainToChange,
            refuses=(404,),
        ),
        "destroy": Operation(
            "delete_custom_domain",
            "Delete a custom domain, if it exists; the tenant no longer answers on this host",
            ("delete:custom_domains",),
            204,
            refuses=(409,),
        ),
    }

    def list(self, request: Request) -> Response:
        query = request.query_params
        project, render = projection_of(query, CUSTOM_DOMAIN_FIELDS), rendering(self.tenant_id)
        if text_of(query, "q"):
            raise invalid_query("Custom domains cannot be searched", "q")
        order = order_of(query, {"domain": "host"})
        if order.is_descending:
            raise invalid_query("Expected domain:1", "sort")
        if query.get("take") or query.get("from"):
            return Response(answer_list(_rows(), query, _LISTING, render, order=order))
        # Without these parameters, the list has no pages, because a tenant has few domains.
        return Response([project.of_list(render(row), *_LISTING.only_on_request) for row in order.apply(_rows())])

    def create(self, request: Request) -> Response:
        body = self.body_of(request, CustomDomainToCreate)
        fields = domain_fields(body)
        fields["metadata"] = {name: value for name, value in fields.get("metadata", {}).items() if value is not None}
        with _named_domain():
            domain = domains.add_domain(tenant_id=self.tenant_id, host=body["domain"], **fields)
        return Response(rendering(self.tenant_id)(domain), status=201)

    def retrieve(self, request: Request, id: str) -> Response:
        project = projection_of(request.query_params, CUSTOM_DOMAIN_FIELDS)
        return Response(project(rendering(self.tenant_id)(_domain_at(id))))

    def partial_update(self, request: Request, id: str) -> Response:
        body = self.body_of(request, CustomDomainToChange)
        changes = domain_fields(body)
        if body.get("domain_metadata", {}) in (None, {}) and "domain_metadata" in body:
            # An empty map clears all names, as in other maps of names and texts.
            changes["metadata"] = dict.fromkeys(_domain_at(id).metadata)
        domain = domains.update_domain(tenant_id=self.tenant_id, domain_id=_domain_at(id).pk, changes=changes)
        return Response(rendering(self.tenant_id)(domain))

    def destroy(self, request: Request, id: str) -> Response:
        domain = _rows().filter(pk=id).first()
        if domain is not None:
            try:
                domains.remove_domain(tenant_id=self.tenant_id, domain_id=domain.pk)
            except NotFound:
                # Clients repeat a delete if its response was lost, so a missing row is a success.
                return Response(status=204)
        return Response(status=204)


class DomainVerificationEndpoint(Endpoint):
    """The proof of control over a custom domain."""

    not_found_code = _INEXISTENT
    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "verify_custom_domain",
            "Look for the TXT record of a custom domain; if the record is correct, the tenant answers on the domain",
            ("create:custom_domains",),
            200,
            CUSTOM_DOMAIN,
            refuses=(404,),
        )
    }

    def create(self, request: Request, id: str) -> Response:
        with _few_at_once():
            domain = domain_checks.check_domain(tenant_id=self.tenant_id, domain_id=id)
        return Response(rendering(self.tenant_id)(domain))


class DomainTestEndpoint(Endpoint):
    """Whether requests to a custom domain reach the tenant."""

    not_found_code = _INEXISTENT
    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "test_custom_domain",
            "Send a request to a verified custom domain and tell whether this tenant answers",
            ("create:custom_domains",),
            200,
            DOMAIN_TEST,
            refuses=(404,),
        )
    }

    def create(self, request: Request, id: str) -> Response:
        with _few_at_once():
            problem = domain_checks.reach_problem(tenant_id=self.tenant_id, domain_id=id)
        return Response({"success": False, "message": problem} if problem else {"success": True})


class DefaultDomainEndpoint(Endpoint):
    """The domain of links in mails."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("get_default_domain", "Read the default domain", ("read:custom_domains",), 200, DEFAULT_DOMAIN),
        "partial_update": Operation(
            "set_default_domain",
            "Choose one of the tenant's verified domains for the links in mails",
            ("update:custom_domains",),
            200,
            DEFAULT_DOMAIN,
            DefaultDomainToSet,
        ),
    }

    def list(self, request: Request) -> Response:
        return Response(self._default())

    def partial_update(self, request: Request) -> Response:
        host = self.body_of(request, DefaultDomainToSet)["domain"]
        with _named_domain():
            domains.set_default_domain(tenant_id=self.tenant_id, host=host)
        return Response(self._default())

    def _default(self) -> dict[str, Any]:
        domain = _rows().filter(is_default=True, verified_at__isnull=False).first()
        return rendering(self.tenant_id)(domain) if domain else {"domain": canonical_host(self.tenant_id)}


def rendering(tenant_id: str) -> Callable[[CustomDomain], dict[str, Any]]:
    """Return a function that renders a domain as a document. Reads the canonical domain of the tenant once."""
    origin = canonical_host(tenant_id)

    def render(domain: CustomDomain) -> dict[str, Any]:
        optional = {"origin_domain_name": origin, "custom_client_ip_header": domain.client_ip_header, "domain_metadata": domain.metadata}
        return {
            "custom_domain_id": domain.pk,
            "domain": domain.host,
            "primary": domain.is_default,
            "is_default": domain.is_default,
            "status": "ready" if domain.verified_at else "pending_verification",
            "type": _TYPES[CustomDomain.CertificateType(domain.certificate_type)],
            "tls_policy": "recommended",
            "verification": _verification(domain),
            **{name: value for name, value in optional.items() if value},
        }

    return render


def _verification(domain: CustomDomain) -> dict[str, Any]:
    method = {"name": "txt", "record": domain_checks.record_value(domain), "domain": domain_checks.record_name(domain)}
    if domain.verified_at:
        return {"methods": [method], "status": "verified", "last_verified_at": wire_time(domain.verified_at)}
    if domain.verification_problem:
        return {"methods": [method], "status": "failed", "error_msg": domain.verification_problem}
    return {"methods": [method], "status": "pending"}


def _rows() -> QuerySet[CustomDomain]:
    return CustomDomain.objects.filter(is_canonical=False)


def _domain_at(domain_id: str) -> CustomDomain:
    domain = _rows().filter(pk=domain_id).first()
    if domain is None:
        raise NotFound("The custom domain does not exist.")
    return domain


@contextmanager
def _named_domain() -> Iterator[None]:
    """In errors of the service, replace the name of the column by the name of the member in the body."""
    try:
        yield
    except Invalid as error:
        raise Invalid({"domain" if name == "host" else name: texts for name, texts in error.errors.items()}) from error


@contextmanager
def _few_at_once() -> Iterator[None]:
    try:
        yield
    except domain_checks.ChecksBusy as error:
        raise Refusal(429, str(error)) from error
