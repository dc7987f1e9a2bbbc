"""The outer layer of the management interface: the order of checks, bindings, rate headers, and one error format."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest
import time_machine
from django.core.exceptions import PermissionDenied
from django.core.exceptions import ValidationError as ModelInvalid
from django.db import OperationalError
from django.http import Http404
from django.test import RequestFactory
from rest_framework import exceptions, serializers
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from authapi.drf import ManagementMixin, claims_of
from authapi.problems import ApiProblem, exception_handler
from foundation.change_context import ChangeContext, ChangingClient, current_change_context
from foundation.tenancy import current_tenant
from identity.hosts import forget_hosts
from identity.models import Tenant
from identity.services.failures import AlreadyExists, Invalid, NotFound, NotSupported
from tests.factories.authapi import access_token, events_token, granted_client


class Body(serializers.Serializer[Any]):
    email = serializers.EmailField()


class Probe(ManagementMixin, APIView):
    """Returns the bound values, or raises the error that the test sets."""

    parser_classes = (JSONParser,)

    required_scopes: ClassVar[dict[str, tuple[str, ...]]] = {"get": ("read:users", "read:user_idp_tokens"), "post": ("create:users",)}
    error: ClassVar[Exception | None] = None
    seen: ClassVar[list[ChangeContext]] = []

    def get_exception_handler(self) -> Callable[..., Response]:
        # Use the exception handler of this app, because the exception handler of the project also handles errors that this app does not
        # raise.
        return exception_handler

    def get(self, request: Request) -> Response:
        self.seen.append(current_change_context())
        if self.error is not None:
            raise self.error
        return Response({"tenant": current_tenant(), "client": claims_of(request).client_id, "user": request.user.pk})

    def post(self, request: Request) -> Response:
        Body(data=request.data).is_valid(raise_exception=True)
        return Response({}, status=201)

    def delete(self, request: Request) -> Response:
        return Response(status=204)


def ask(tenant: Tenant, token: str | None, method: str = "get", body: Any = None, **changes: str) -> tuple[int, Any, Any]:
    headers = {"HTTP_HOST": f"{tenant.pk}.example.test", "REMOTE_ADDR": "192.0.2.1", "HTTP_USER_AGENT": "probe/1"}
    if token is not None:
        headers["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    data = body if isinstance(body, str) else json.dumps(body)
    request = RequestFactory().generic(method.upper(), "/api/v2/probe", data, "application/json", **(headers | changes))  # type: ignore[arg-type]
    response: Any = Probe.as_view()(request)
    response.render()
    return response.status_code, json.loads(response.content or b"null"), response


@pytest.fixture
def token(tenant: Tenant) -> str:
    return events_token(tenant, "read:users", "create:users")


def test_a_valid_token_binds_tenant_client_and_change_context(tenant: Tenant) -> None:
    registered = granted_client(tenant, ["read:users"], metadata={"tier": "gold"})
    status, body, _ = ask(tenant, access_token(tenant, registered))
    assert (status, body) == (200, {"tenant": tenant.pk, "client": registered.client_id, "user": registered.client_id})
    context = Probe.seen[-1]
    assert context.client == ChangingClient(registered.client_id, "Reader", {"tier": "gold"})
    assert context.request == {
        "geo": {},
        "hostname": f"{tenant.pk}.example.test",
        "ip": "192.0.2.1",
        "method": "GET",
        "user_agent": "probe/1",
    }


def test_no_tenant_or_client_stays_bound_after_the_request(tenant: Tenant, token: str) -> None:
    ask(tenant, token)
    assert current_tenant() is None
    assert current_change_context() == ChangeContext()


def test_any_one_of_the_named_scopes_is_sufficient(tenant: Tenant) -> None:
    assert ask(tenant, events_token(tenant, "read:user_idp_tokens"))[0] == 200


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic abc", "bearer nonsense"])
def test_a_request_without_a_valid_token_gets_401(tenant: Tenant, header: str | None) -> None:
    changes = {} if header is None else {"HTTP_AUTHORIZATION": header}
    status, body, response = ask(tenant, None, **changes)
    assert (status, body) == (401, {"statusCode": 401, "error": "Unauthorized", "message": "Invalid token."})
    assert (response["X-RateLimit-Limit"], response["X-RateLimit-Remaining"]) == ("60", "59")


def test_a_request_without_the_scope_gets_403_with_the_sufficient_scopes(tenant: Tenant) -> None:
    status, body, _ = ask(tenant, events_token(tenant, "read:events"))
    assert status == 403
    assert body == {
        "statusCode": 403,
        "error": "Forbidden",
        "message": "Insufficient scope, expected any of: read:users,read:user_idp_tokens",
        "errorCode": "insufficient_scope",
    }


def test_a_method_without_a_scope_gets_500(tenant: Tenant, token: str, caplog: pytest.LogCaptureFixture) -> None:
    status, body, _ = ask(tenant, token, "delete")
    assert (status, body["statusCode"]) == (500, 500)
    assert "names no scope for 'delete'" in caplog.text


def test_an_unregistered_host_gets_404_before_the_token_is_checked(tenant: Tenant) -> None:
    assert ask(tenant, None, HTTP_HOST="elsewhere.example.test")[0] == 404


def test_a_suspended_tenant_gets_403_before_the_token_is_checked(tenant: Tenant) -> None:
    Tenant.objects.filter(pk=tenant.pk).update(status="suspended")
    forget_hosts()
    assert ask(tenant, None)[:2] == (403, {"statusCode": 403, "error": "Forbidden", "message": "The tenant is suspended."})


def test_a_request_over_the_rate_gets_429_but_an_invalid_token_gets_401(tenant: Tenant, token: str, settings: Any) -> None:
    settings.RATE_LIMIT_BURST, settings.RATE_LIMIT_PER_SECOND = 1, 1
    answers = [ask(tenant, token) for _ in range(6)]
    status, body, response = next(answer for answer in answers if answer[0] == 429)
    assert body["message"] == "Too many requests. Check the X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset headers."
    assert int(response["Retry-After"]) >= 1
    assert response["X-RateLimit-Remaining"] == "0"
    assert ask(tenant, "nonsense")[0] == 401
    assert status == 429


def test_every_answer_has_the_rate_headers(tenant: Tenant, token: str) -> None:
    _, _, response = ask(tenant, token)
    assert (response["X-RateLimit-Limit"], response["X-RateLimit-Remaining"]) == ("200", "199")
    assert response["Cache-Control"] == "no-store"


ERRORS: list[tuple[Exception, int, str | None, str]] = [
    (ApiProblem(409, "There already.", "taken"), 409, "taken", "There already."),
    (NotFound(), 404, None, "Not found."),
    (Http404(), 404, None, "Not found."),
    (exceptions.NotFound(), 404, None, "Not found."),
    (AlreadyExists("The user already exists."), 409, None, "The user already exists."),
    (NotSupported("Not for this connection."), 400, "operation_not_supported", "Not for this connection."),
    (Invalid({"email": ["Too long."]}), 400, "invalid_body", "Payload validation error: Too long. (on property email)"),
    (ModelInvalid({"name": ["Empty."]}), 400, "invalid_body", "Payload validation error: Empty. (on property name)"),
    (ModelInvalid("Odd."), 400, "invalid_body", "Payload validation error: Odd."),
    (PermissionDenied(), 403, None, "You may not do this."),
    (exceptions.UnsupportedMediaType("text/plain"), 415, None, 'Unsupported media type "text/plain" in request.'),
    (OperationalError("password=x"), 503, None, "The service cannot answer right now. Try again."),
    (ZeroDivisionError("secret"), 500, None, "The service met an unexpected condition."),
]


@pytest.mark.parametrize(("error", "status", "code", "message"), ERRORS, ids=[type(row[0]).__name__ for row in ERRORS])
def test_every_error_has_the_same_format(
    tenant: Tenant, token: str, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, code: str | None, message: str
) -> None:
    monkeypatch.setattr(Probe, "error", error)
    answered, body, response = ask(tenant, token)
    assert (answered, body["statusCode"], body["message"], body.get("errorCode")) == (status, status, message, code)
    assert "X-RateLimit-Reset" in response


def test_the_error_for_an_invalid_body_contains_the_property(tenant: Tenant, token: str) -> None:
    status, body, _ = ask(tenant, token, "post", {"email": "nobody"})
    assert status == 400
    assert body["errorCode"] == "invalid_body"
    assert "(on property email)" in body["message"]


def test_a_body_that_is_not_json_is_refused_as_an_invalid_body(tenant: Tenant, token: str) -> None:
    status, body, _ = ask(tenant, token, "post", "{")
    assert (status, body["errorCode"]) == (400, "invalid_body")


@pytest.mark.parametrize("method", ["put", "options", "trace"])
def test_a_method_without_a_handler_gets_405(tenant: Tenant, token: str, method: str) -> None:
    status, body, _ = ask(tenant, token, method)
    assert (status, body["error"]) == (405, "Method Not Allowed")


def test_a_head_request_requires_the_scope_of_get(tenant: Tenant, token: str) -> None:
    assert ask(tenant, token, "head")[0] == 200
    assert ask(tenant, events_token(tenant, "read:events"), "head")[0] == 403


def test_refused_tokens_are_charged_to_their_ip_address_and_not_to_the_tenant(tenant: Tenant, token: str, settings: Any) -> None:
    settings.FAILED_AUTHENTICATIONS_PER_MINUTE = 2
    with time_machine.travel(datetime.now(UTC).replace(second=5), tick=False):
        refused = [ask(tenant, "nonsense") for _ in range(4)]
        status, _, response = ask(tenant, token)
    assert [answer[0] for answer in refused] == [401, 401, 429, 429]
    assert refused[-1][1]["message"].startswith("Too many requests.")
    assert int(refused[-1][2]["Retry-After"]) >= 1
    assert (refused[-1][2]["X-RateLimit-Limit"], refused[-1][2]["X-RateLimit-Remaining"]) == ("2", "0")
    # A valid client behind the same IP address is served, and has the whole rate of the tenant.
    assert (status, response["X-RateLimit-Remaining"]) == (200, "199")
