"""The rules for every URL of the management interface: tokens, scopes, paths, methods, headers, and bodies of errors."""

from __future__ import annotations

import time

from django.conf import LazySettings

from identity.models import Connection, Tenant, User
from identity.services.tenants import set_tenant_status
from tests.factories.identity import make_user
from tests.management import Answer, Management, request, segment

RATES = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")


def refusal(answer: Answer) -> tuple[int, str, str | None]:
    """Check that the body has the standard error format, and return the status, the text of `error` and the error code, if any."""
    body = answer.json
    assert body["statusCode"] == answer.status
    assert set(body) - {"errorCode"} == {"statusCode", "error", "message"}
    assert isinstance(body["message"], str)
    return answer.status, body["error"], body.get("errorCode")


def test_a_request_without_a_valid_token_is_refused(api: Management) -> None:
    for token in ("", "Bearer", "Bearer nonsense", f"Basic {api.token}", f"Bearer {api.token[:-4]}AAAA"):
        answer = api.call("GET", "users", headers={"authorization": token})
        assert refusal(answer) == (401, "Unauthorized", None)
        assert set(RATES) <= answer.headers.keys()
        assert answer.headers["www-authenticate"] == "Bearer"


def test_every_operation_requires_its_scope(tenant: Tenant) -> None:
    stranger = Management(tenant, scope="read:clients")
    for method, path, scope in (
        ("GET", "users", "read:users"),
        ("HEAD", "users", None),
        ("POST", "users", "create:users"),
        ("GET", "users/a%7Cb", "read:users"),
        ("PATCH", "users/a%7Cb", "update:users,update:users_app_metadata"),
        ("DELETE", "users/a%7Cb", "delete:users"),
        ("POST", "users/a%7Cb/identities", "update:users"),
        ("DELETE", "users/a%7Cb/identities/c/d", "update:users"),
        ("GET", "users-by-email", "read:users"),
        ("GET", "connections", "read:connections"),
        ("POST", "connections", "create:connections"),
        ("GET", "connections/a", "read:connections"),
        ("PATCH", "connections/a", "update:connections"),
        ("DELETE", "connections/a", "delete:connections"),
    ):
        answer = stranger.call(method, path)
        assert answer.status == 403, (method, path)
        if scope is not None:
            assert refusal(answer) == (403, "Forbidden", "insufficient_scope")
            assert answer.json["message"] == f"Insufficient scope, expected any of: {scope}"


def test_an_encoded_id_in_a_path_is_decoded_exactly_once(api: Management, database_connection: Connection) -> None:
    for identifier in ("a/b", "a%2Fb", "a|b", "ü", "a+b", "..", "identities", "a%", "a?b#c"):
        user = make_user(connection=database_connection, identifier=identifier)
        answer = api.get(f"users/{segment(user.user_id)}")
        assert (answer.status, answer.json["user_id"]) == (200, user.user_id)


def test_bytes_that_are_not_utf_8_are_refused_as_an_id(api: Management) -> None:
    for sent in ("users/database%7C%ff", "users/database%7C%00", "connections/%00"):
        assert refusal(api.get(sent)) == (400, "Bad Request", "invalid_uri")


def test_unknown_urls_get_404_with_the_standard_body_and_no_redirect(api: Management, ada: User) -> None:
    for path in ("nothing", "users/", f"users/{segment(ada.user_id)}/", "users//identities", "/api/v2", "/api/v2/", "event-streams/"):
        answer = api.get(path)
        assert refusal(answer) == (404, "Not Found", None), path
        assert set(RATES) <= answer.headers.keys()


def test_methods_without_an_operation_get_405_with_the_allowed_methods(api: Management, ada: User) -> None:
    for method, path, allowed in (
        ("PUT", "users", {"GET", "HEAD", "POST"}),
        ("OPTIONS", "users", {"GET", "HEAD", "POST"}),
        ("POST", f"users/{segment(ada.user_id)}", {"GET", "HEAD", "PATCH", "DELETE"}),
        ("GET", f"users/{segment(ada.user_id)}/identities", {"POST"}),
    ):
        answer = api.call(method, path)
        assert refusal(answer) == (405, "Method Not Allowed", None)
        assert set(answer.headers["allow"].split(", ")) == allowed


def test_every_response_has_rate_headers_which_count_down(api: Management) -> None:
    first, second = api.get("users"), api.get("users/nobody")
    for answer in (first, second):
        assert all(answer.headers[name].isdigit() for name in RATES)
    assert first.headers["x-ratelimit-limit"] == "200"


def test_a_request_over_the_rate_limit_gets_429_with_the_time_to_wait(api: Management, settings: LazySettings) -> None:
    settings.RATE_LIMIT_BURST = 2
    settings.RATE_LIMIT_PER_SECOND = 1
    answers = [api.get("users") for _ in range(6)]
    limited = [answer for answer in answers if answer.status == 429]
    assert limited
    assert refusal(limited[0]) == (429, "Too Many Requests", None)
    assert int(limited[0].headers["retry-after"]) >= 1
    assert limited[0].headers["x-ratelimit-remaining"] == "0"


def test_a_request_with_any_accept_header_gets_json(api: Management) -> None:
    for accept in ("*/*", "text/html", "application/xml", ""):
        answer = api.call("GET", "users", headers={"accept": accept})
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json; charset=utf-8")


def test_a_correlation_id_of_any_length_is_accepted(api: Management, ada: User) -> None:
    for value in ("abc-123", "x" * 64, "x" * 65):
        assert api.call("PATCH", f"users/{segment(ada.user_id)}", body={}, headers={"x-correlation-id": value}).status == 200


def test_caches_must_not_store_responses(api: Management) -> None:
    assert api.get("users").headers["cache-control"] == "no-store"


def test_a_suspended_tenant_and_an_unknown_host_are_refused(api: Management, tenant: Tenant) -> None:
    unknown = request("GET", "/api/v2/users", "", {"host": "nobody.example.test", "authorization": f"Bearer {api.token}"}, b"")
    assert refusal(unknown)[:2] == (404, "Not Found")
    set_tenant_status(tenant_id=tenant.pk, status="suspended")
    assert refusal(_eventually_refused(api))[:2] == (403, "Forbidden")


def _eventually_refused(api: Management) -> Answer:
    """Send requests until one is refused, because the process caches hosts for some seconds. Fails after ten seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        answer = api.get("users")
        if answer.status != 200:
            return answer
    raise AssertionError("the suspended tenant is still served")
