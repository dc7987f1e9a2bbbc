"""The base class of all endpoints of the management interface. `config.api` adds the checks of token and rate limit, and the tenant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import structlog
from django.http.response import HttpResponseBase
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.viewsets import ViewSet

from foundation.api.fields import Closed
from foundation.api.operations import Operation, Schema
from foundation.api.refusals import insufficient_scope, invalid_body, invalid_path
from foundation.api.snapshots import with_cursor
from foundation.json_values import text_problem
from foundation.tenancy import TenantRequired, current_tenant

_LONGEST_CORRELATION_ID = 64


class Endpoint(ViewSet):
    """A resource: `operations` declares its methods and their scopes."""

    operations: ClassVar[Mapping[str, Operation]] = {}
    required_scopes: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    # Descriptions of path parameters for the OpenAPI document, in addition to the default descriptions.
    path_schemas: ClassVar[Mapping[str, Schema]] = {}
    # The `errorCode` of the 404 response for a missing row; None if clients expect no code.
    not_found_code: ClassVar[str | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.required_scopes = {action: operation.single_scopes for action, operation in cls.operations.items()}
        for action, operation in cls.operations.items():
            if operation.snapshot_of is not None:
                setattr(cls, action, with_cursor(getattr(cls, action)))

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        correlation_id = request.headers.get("X-Correlation-ID", "")
        if not 0 < len(correlation_id) <= _LONGEST_CORRELATION_ID:
            return super().dispatch(request, *args, **kwargs)
        with structlog.contextvars.bound_contextvars(correlation_id=correlation_id):
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse a method for which no operation is declared, then check the scope, then refuse ids that no row can have."""
        if self.action not in self.operations:
            raise exceptions.MethodNotAllowed(request.method or "")
        super().initial(request, *args, **kwargs)
        operation = self.operations[self.action]
        held = request.auth.scopes  # type: ignore[union-attr]  # the token verifier's claims
        if not any(held.issuperset(together.split()) for together in operation.scopes):
            raise insufficient_scope(*operation.single_scopes)
        for name, value in kwargs.items():
            problem = text_problem(value)
            if problem:
                raise invalid_path(problem, name)

    @property
    def tenant_id(self) -> str:
        """The id of the tenant of the host. It is fixed for the whole request. Raises `TenantRequired` on a host without a tenant."""
        tenant_id = current_tenant()
        if tenant_id is None:
            raise TenantRequired
        return tenant_id

    def body_of(self, request: Request, body: type[Closed]) -> dict[str, Any]:
        """Return the validated members that the body contains."""
        if not isinstance(request.data, dict):
            raise invalid_body("Expected type object", "body")
        serializer = body(data=request.data)
        serializer.is_valid(raise_exception=True)
        members: dict[str, Any] = serializer.validated_data
        return members

    def list_of(self, request: Request, body: type[Closed], *, most: int) -> list[dict[str, Any]]:
        """Return the validated items of a body that is a list of 1 to `most` objects."""
        if not isinstance(request.data, list):
            raise invalid_body("Expected type array", "body")
        serializer = body(data=request.data, many=True, allow_empty=False, max_length=most)  # type: ignore[call-arg]  # goes to the list
        serializer.is_valid(raise_exception=True)
        items: list[dict[str, Any]] = serializer.validated_data
        return items

    def require_scope(self, request: Request, *expected: str) -> None:
        """Refuse a token that has none of the `expected` scopes. Used for checks that depend on the query, the body or the row."""
        if request.auth.scopes.isdisjoint(expected):  # type: ignore[union-attr]  # the token verifier's claims
            raise insufficient_scope(*expected)
