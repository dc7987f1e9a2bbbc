"""The management interface in DRF: bearer tokens, scopes, rates, and one error body.

A view derives from `ManagementMixin` (before an `APIView` or `ViewSet`) and names its scopes:

    class UserViewSet(ManagementMixin, ViewSet):
        required_scopes = {"list": ("read:users",), "create": ("create:users",)}

While a view runs, the tenant of the host is bound (`Model.objects` works), the change context contains the client and the request, and
`request.user` is an `ApiClient`. To refuse a request, a handler raises `ApiProblem`, or any validation error of DRF or Django.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http.response import HttpResponseBase
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.edge import throttling
from authapi.edge.address_rates import charged_debt_in_thread, debt_of
from authapi.edge.addresses import Origin, origin_of
from authapi.failures.requests import TENANT_STOPPED
from authapi.logs.noted_writes import note_response, writing_of
from authapi.possession.holders import SCHEMES, asked_by, verified
from authapi.possession.presented import Asked
from authapi.problems import ApiProblem, TooManyRequests
from authapi.services.administrative_log import Writing, writing
from authapi.tokens.verifying import InsufficientScope, InvalidToken, TokenRefused, VerifiedToken, require_scope
from foundation.acting import Act, Actor, acting
from foundation.change_context import ChangeContext, ChangingClient, change_context
from foundation.tenancy import tenant_bound
from identity.hosts import HostMatch, resolve_host
from identity.stopped_tenants import RETRY_AFTER_SECONDS, STOPPED_STATUSES

if TYPE_CHECKING:
    from django.core.handlers.asgi import ASGIRequest

    # A real import would be circular: DRF's views import classes of this module, because the settings contain their names.
    from rest_framework.views import APIView

# Refusals because of the rate limit are not logged: during a flood of requests, each refusal would also cause a log line.
_TOO_MANY = 429
# The name of the management interface in rate limits.
RATE = "management"
_TENANT_PROBLEMS = {
    "suspended": ApiProblem(403, "The tenant is suspended."),
    "deleting": ApiProblem(403, "The tenant is suspended."),
    "deleted": ApiProblem(403, "The tenant is suspended."),
    "draining": ApiProblem(503, "The tenant is being closed."),
    **dict.fromkeys(STOPPED_STATUSES, ApiProblem(503, TENANT_STOPPED, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})),
}


@dataclass(frozen=True)
class ApiClient:
    """The client of a request, used as the Django user of the request."""

    client_id: str
    name: str
    is_authenticated: ClassVar[bool] = True
    is_active: ClassVar[bool] = True
    is_anonymous: ClassVar[bool] = False
    is_staff: ClassVar[bool] = False

    @property
    def pk(self) -> str:
        return self.client_id


class BearerAuthentication(BaseAuthentication):
    """Accepts only access tokens for the management interface, in a header `Authorization: Bearer` or `Authorization: DPoP`."""

    def authenticate(self, request: Request) -> tuple[ApiClient, VerifiedToken]:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() not in SCHEMES or not token.strip():
            raise InvalidToken
        host = host_of(request)
        claims = verified(kind.lower(), token.strip(), host=host, asked=lambda: _asked(request, host))
        return ApiClient(claims.client_id, claims.client_name), claims


def _asked(request: Request, host: HostMatch) -> Asked:
    """Return the values with which a DPoP proof is compared, such as the method and the headers of the request."""
    pairs = cast("ASGIRequest", request._request).scope["headers"]
    return asked_by(pairs, host=host, method=request.method or "", path=request.path)


class HasScope(BasePermission):
    """Allows a token that has at least one of the scopes that the view names for this action."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        method = (request.method or "").lower()
        if method not in view.http_method_names or not hasattr(view, method):
            # The method is not allowed: let DRF answer 405.
            return True
        action = getattr(view, "action", None) or method.replace("head", "get")
        expected = getattr(view, "required_scopes", {}).get(action)
        if not expected:
            raise ImproperlyConfigured(f"{type(view).__name__} names no scope for {action!r}.")
        require_scope(claims_of(request), *expected)
        return True


class ManagementMixin:
    """Binds the tenant and the change context to a request, and sets the rate headers of every response."""

    authentication_classes: Sequence[type[BaseAuthentication]] = (BearerAuthentication,)
    permission_classes: Sequence[Any] = (HasScope,)
    required_scopes: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    # OPTIONS is left out: DRF would answer a preflight with a description of the view.
    http_method_names: Sequence[str] = ("get", "head", "post", "put", "patch", "delete")
    _rate: throttling.Rate | None = None
    _writing: Writing | None = None

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with ExitStack() as self._bindings:
            return super().dispatch(request, *args, **kwargs)  # type: ignore[misc,no-any-return]  # an APIView comes after

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check host, tenant, token, scope and rate, in the same order as `/events`.

        A request with a valid token counts against the rate limit of the tenant. A request whose token is missing or refused counts against
        the limit of the IP address.
        """
        host, origin = host_of(request), origin_of_request(request)
        self._rate = debt_of(host.tenant_id, origin)
        if host.status in _TENANT_PROBLEMS:
            raise _TENANT_PROBLEMS[host.status]
        try:
            super().initial(request, *args, **kwargs)  # type: ignore[misc]
        except InsufficientScope:
            # The token is valid, so the request counts against the limit of the tenant.
            self._rate = throttling.hit(host.tenant_id, RATE)
            raise
        except TokenRefused as refused:
            self._rate = charged_debt_in_thread(host.tenant_id, origin)
            if self._rate.is_exceeded:
                raise TooManyRequests from refused
            raise
        self._rate = throttling.hit(host.tenant_id, RATE)
        if self._rate.is_exceeded:
            raise TooManyRequests
        self._bindings.enter_context(tenant_bound(host.tenant_id))
        context = _context_of(request)
        self._bindings.enter_context(change_context(context))
        self._bindings.enter_context(acting(_act_of(claims_of(request), context)))
        if self._writing is not None:
            self._bindings.enter_context(writing(self._writing))

    def perform_authentication(self, request: Request) -> None:
        """Verify the token. From then on, every write gets a line in the administrative log, unless the rate limit refuses the write."""
        super().perform_authentication(request)  # type: ignore[misc]
        operation = getattr(self, "operations", {}).get(getattr(self, "action", None))
        if operation is not None and request.method not in SAFE_METHODS:
            self._writing = writing_of(request, claims_of(request), operation, getattr(self, "kwargs", {}), host_of(request).tenant_id)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        final: Response = super().finalize_response(request, response, *args, **kwargs)  # type: ignore[misc]
        rate = self._rate.used_up if self._rate and final.status_code == 429 else self._rate
        for name, value in rate.headers.items() if rate else ():
            final[name] = value
        final["Cache-Control"] = "no-store"
        if self._writing is not None and final.status_code != _TOO_MANY:
            note_response(self._writing, final)
        return final


def host_of(request: Any) -> HostMatch:
    """Return the tenant of the request's host. Raises `ApiProblem` with status 404 for an unknown host."""
    match = resolve_host(request.META.get("HTTP_HOST", ""))
    if match is None:
        raise ApiProblem(404, "No tenant answers on this host.")
    return match


def origin_of_request(request: Any) -> Origin:
    """Return the trusted IP address of the client of a request."""
    return origin_of(request.META.get("REMOTE_ADDR") or "", request.META.get("HTTP_X_FORWARDED_FOR", ""), settings.TRUSTED_PROXIES)


def claims_of(request: Request) -> VerifiedToken:
    """Return the verified access token of this request."""
    return cast("VerifiedToken", request.auth)


def _act_of(claims: VerifiedToken, context: ChangeContext) -> Act:
    sent = context.request or {}
    actor = Actor("client", claims.client_id, claims.client_name or claims.client_id)
    return Act(actor, ip=sent.get("ip"), user_agent=sent.get("user_agent", ""), label="Management interface")


def _context_of(request: Request) -> ChangeContext:
    claims = claims_of(request)
    return ChangeContext(
        client=ChangingClient(claims.client_id, claims.client_name, claims.client_metadata),
        request={
            "geo": {},
            "hostname": host_of(request).host,
            "ip": origin_of_request(request).address,
            "method": request.method,
            "user_agent": request.META.get("HTTP_USER_AGENT", ""),
        },
    )
