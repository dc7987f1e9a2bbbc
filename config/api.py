"""Assembles the management interface: the endpoints of all apps, their authentication, and the OpenAPI document."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, NoReturn

import orjson
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, re_path, register_converter
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from authapi.api import (
    client_credentials,
    client_schemas,
    resource_schemas,
    sign_in_schemas,
    signing_keys,
    tenant_setting_schemas,
)
from authapi.api.attacks import protection
from authapi.api.branding import theme_schemas
from authapi.api.factors import schemas as factor_schemas
from authapi.api.links import invitation_schemas
from authapi.api.token_exchange import bodies as exchange_bodies
from authapi.drf import ManagementMixin
from authapi.management_scopes import MANAGEMENT_SCOPES
from authapi.problems import ApiProblem
from config.management_routes import ROUTES
from config.upstream.table import Entry, hidden_behind, is_hidden, unbuilt_at
from events.api import stream_components, subscribe_operation
from foundation.api.operations import Route, Schema
from foundation.api.paths import Segment
from foundation.api.schema import BEARER, CLIENT_CREDENTIALS, ERROR
from identity.api import connection_schemas, custom_domain_schemas, group_schemas, job_schemas, role_schemas, user_schemas
from identity.api.messages import schemas as message_schemas
from identity.api.organizations import organization_schemas
from identity.hosts import is_platform_host, resolve_host
from provisioning.api import action_schemas, delivery_schemas, event_stream_schemas

register_converter(Segment, "segment")

# The page runs only its own scripts. Swagger UI sets styles and small images from its script.
_BROWSER_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


# If CLIENT_ID or CLIENT_SECRET is not set, the shell prints an error, and curl sends no request.
_CURL = """\
curl --silent --show-error --request POST "ISSUERoauth/token" \\
  --data grant_type=client_credentials \\
  --data-urlencode "client_id=${CLIENT_ID:?Set CLIENT_ID to the id of the client}" \\
  --data-urlencode "client_secret=${CLIENT_SECRET:?Set CLIENT_SECRET to the secret of the client}" \\
  --data-urlencode "audience=ISSUERapi/v2/"
"""

# Modules with the schemas of responses.
_DESCRIBED: tuple[Any, ...] = (
    user_schemas,
    connection_schemas,
    custom_domain_schemas,
    group_schemas,
    job_schemas,
    message_schemas,
    organization_schemas,
    role_schemas,
    client_schemas,
    client_credentials,
    resource_schemas,
    invitation_schemas,
    exchange_bodies,
    sign_in_schemas,
    factor_schemas,
    signing_keys,
    theme_schemas,
    tenant_setting_schemas,
    protection,
    event_stream_schemas,
    delivery_schemas,
    action_schemas,
)


class UnknownAddress(ManagementMixin, APIView):
    """Answers a request for a path below `/api/v2` that has no operation: 404 with the usual body if the token is valid.

    If client libraries have such an operation, the body says that it is not supported, and why (`config.upstream`).
    """

    permission_classes = ()
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> NoReturn:
        super().initial(request, *args, **kwargs)
        unbuilt = unbuilt_at(request.method, request.path_info)
        if unbuilt is not None:
            raise ApiProblem(404, unbuilt.refusal, "operation_not_supported")
        raise Http404


class _Managed(ManagementMixin):
    """Mixin of every endpoint. A request for an unsupported operation gets 404, even if its path matches the pattern of this endpoint."""

    hidden: ClassVar[tuple[Entry, ...]] = ()

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if self.hidden and is_hidden(self.hidden, request.method, request.path_info):
            return _unknown(request)
        return super().dispatch(request, *args, **kwargs)


class ApiBrowser(SpectacularSwaggerSplitView):
    """Swagger UI from local files, only on the platform's host."""

    authentication_classes = ()
    permission_classes = ()
    template_name = "api_browser.html"
    url = "/api/docs/openapi.json"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        require_platform_host(request)
        response = super().dispatch(request, *args, **kwargs)
        response["Content-Security-Policy"] = _BROWSER_POLICY
        return response

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Show Swagger UI with the command that gets a token.

        If the host of this page also belongs to a tenant, as on loopback, the command contains this host. Otherwise it has a placeholder.
        """
        response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        found = resolve_host(request.META.get("HTTP_HOST", ""))
        response.data["token_command"] = _CURL.replace("ISSUER", found.issuer if found else "https://TENANT_DOMAIN/")
        response.data["names_tenant"] = found is not None
        return response


_unknown = UnknownAddress.as_view()


def management_urls() -> list[URLPattern]:
    """Return the URL patterns of the management interface that Django serves."""
    routes = [path(f"api/v2/{route.path}", _view(route)) for route in ROUTES]
    unknown = re_path(r"^api/v2(?:/.*)?$", _unknown)
    return [*routes, path("api/v2/openapi.json", openapi), unknown]


def browser_urls() -> list[URLPattern]:
    """Return the URL patterns of the API browser."""
    return [path("api/docs", ApiBrowser.as_view()), path("api/docs/openapi.json", platform_openapi)]


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI document. A request needs no token, so it counts against the rate of the client's IP address
    (`config.server.rates`).
    """
    if resolve_host(request.META.get("HTTP_HOST", "")) is None:
        raise Http404
    return HttpResponse(openapi_document(), content_type="application/json; charset=utf-8")


@require_safe
def platform_openapi(request: HttpRequest) -> HttpResponse:
    """Return the same document on the platform's host, which has no tenant."""
    require_platform_host(request)
    return HttpResponse(openapi_document(), content_type="application/json; charset=utf-8")


def require_platform_host(request: HttpRequest) -> None:
    """Raise `Http404` on every host except the platform host."""
    if not is_platform_host(request.META.get("HTTP_HOST", "")):
        raise Http404


@lru_cache(maxsize=1)
def openapi_document() -> bytes:
    """Return the OpenAPI document: the operations of the endpoints, and `/events`, which is described by hand."""
    generator: Any = SchemaGenerator
    document: Schema = generator(patterns=management_urls()[:-2]).get_schema(request=None, public=True)
    document["paths"]["/events"] = {"get": subscribe_operation()}
    document["paths"] = dict(sorted(document["paths"].items()))
    schemas = document["components"]["schemas"]
    for module in _DESCRIBED:
        schemas.update(module.COMPONENTS)
    schemas.update(stream_components())
    schemas["Error"] = ERROR
    document["components"]["securitySchemes"] = _security_schemes()
    return orjson.dumps(document)


def _security_schemes() -> Schema:
    flow = {"tokenUrl": "/oauth/token", "scopes": MANAGEMENT_SCOPES}
    return {
        BEARER: {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        CLIENT_CREDENTIALS: {"type": "oauth2", "flows": {"clientCredentials": flow}},
    }


def _view(route: Route) -> Any:
    """Return the view of an endpoint, with authentication, tenant and rates.

    This function adds all three, because an import contract forbids `identity`, which has endpoints, to import the verification of tokens.
    """
    members = {"__doc__": route.endpoint.__doc__, "hidden": hidden_behind(route)}
    managed = type(route.endpoint.__name__, (_Managed, route.endpoint), members)
    return managed.as_view(dict(route.actions))  # type: ignore[attr-defined]  # an APIView, as every endpoint
