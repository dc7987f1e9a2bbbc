"""Sends generated requests, valid and invalid, to a running service, and checks that the OpenAPI document describes the answers.

`make test-deep` sends more requests per operation, and requests at the bounds of every field.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import jsonschema_rs
import orjson
import pytest
import requests
import schemathesis
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker
from schemathesis.checks import CheckContext, negative_data_rejection, unsupported_method
from schemathesis.config import SchemathesisConfig
from schemathesis.core.parameters import ParameterLocation

from config.api import openapi_document
from config.upstream.table import unbuilt_at
from identity.services import users
from tests.config.two_tenants import FIXED, Call, bodies, calls, digests_of, ids_of
from tests.conformance.web_process import WebProcess, web_process
from tests.depth import IS_DEEP, sample, sized
from tests.factories.identity import make_connection, make_user
from tests.factories.models.authapi import ApiResourceFactory
from tests.factories.models.identity import TenantFactory
from tests.management import Management

Case = schemathesis.Case[Any]
Judge = Callable[[CheckContext, schemathesis.Response, Case], bool | None]

_DOCUMENT: dict[str, Any] = orjson.loads(openapi_document())
_PHASES = {"examples": {"enabled": False}, "coverage": {"enabled": IS_DEEP}}
# Every run sends the same requests, so that a failure can be repeated.
_GENERATION: dict[str, Any] = {
    "max-examples": sized(1, deep=50),
    "deterministic": True,
    "database": "none",
    "no-shrink": not IS_DEEP,
}
# Generate no unknown parameters: Schemathesis would expect a refusal, and the service ignores unknown parameters.
_GENERATION["allow-extra-parameters"] = False
# Schemathesis would check that valid requests are always accepted. Instead, `refused_for_a_reason` checks that they are accepted, or
# refused for a known reason.
_CHECKS = {"positive_data_acceptance": {"enabled": False}}
# A response of `/events` stays open for minutes, so the test reads only up to the first message. The schema of a message describes the
# JSON of its data.
_EVENTS = {"include-path": "/events", "max-stream-events": 1, "checks": {"response_schema_conformance": {"enabled": False}}}
_CONFIG = {"seed": 1, "request-timeout": 20, "generation": _GENERATION, "phases": _PHASES, "checks": _CHECKS, "operations": [_EVENTS]}
CONFIG = SchemathesisConfig.from_dict(_CONFIG)
SCHEMA = schemathesis.openapi.from_dict(_DOCUMENT, config=CONFIG)
CALLS = {f"{call.method} /{call.path}": call for call in calls()}
MESSAGE = jsonschema_rs.validator_for({"$ref": "#/components/schemas/EventStreamMessage", "components": _DOCUMENT["components"]})
METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"}
_FILES = {"POST /jobs/users-imports"}
# The statuses of valid requests whose success depends on other rows. No dead letter exists, so none can be redelivered. Only one redelivery
# job may run at a time.
_IN_TIME = {
    "POST /event-streams/{id}/redeliver/{event_id}": {404},
    "POST /event-streams/{id}/redeliver": {202, 409},
    # No deletions are staged, so none can be approved.
    "POST /event-streams/{id}/allow-deletions": {409},
    "POST /event-streams/{id}/synchronizations": {202, 409},
    # The theme exists already. A mail server exists only after a tenant adds it.
    "POST /branding/themes": {409},
    "GET /emails/provider": {404},
    # No IP address is blocked.
    "GET /anomaly/blocks/ips/{ip}": {404},
    # A setup link requires a factor that the tenant has enabled, and this tenant has enabled no factor.
    "POST /guardian/enrollments/ticket": {200, 409},
    # A recovery code requires a second factor, which most users do not have.
    "POST /users/{id}/recovery-code-regeneration": {200, 409},
    # The only synchronization has ended.
    **{f"POST /event-streams/{{id}}/synchronizations/{{job_id}}/{answer}": {409} for answer in ("resume", "confirm", "decline", "cancel")},
}
# Features that the service does not have. A read answers 404 and a write is refused. The document describes no success for them.
_REFUSED = {
    f"{method.upper()} {path}": {404 if method == "get" else 400}
    for path, operations in _DOCUMENT["paths"].items()
    for method, operation in operations.items()
    if min(operation["responses"]) >= "400"
}
_FORMAL_CODES = {"invalid_body", "invalid_query_string", "invalid_uri"}
# Parts of the messages of refusals whose reason no schema can express.
_UNSAID = (
    # Rules over several members of a synchronization, and the syntax of the attribute and the expression in its match rule.
    "A dry run or comparison cannot enable",
    "needs the expression it is compared with",
    "is not a path such as",
    "The action does not exist or is not deployed",
    # References to other rows.
    "No organization found",
    "The API has no scope",
    "The id of an action is expected",
    "Not a checkpoint of this list",
    # Configuration of an action.
    "nor a class under",
    "is not installed",
    "Unknown option",
    "A mapping table is a list",
    "A row must have the members path and source",
    "is one of",
    "Letters, digits and underscores",
    "must be",
    "has no value yet",
    # Rules over several members.
    "Missing required property",
    "Enable a factor first",
    "Not a property of a method",
    "at least 16 bytes",
    "Expected a COSE key",
    "have no sender yet",
    "Expected a verified domain",
    "Too few properties",
    "names its",
    "Each value once",
    "names it,",
    "Does not fit the id",
    "sorts only by `created_at`",
    "Not for database connections",
    "cannot be changed",
    "PasswordStrengthError",
    "A client with organization settings must",
    "Needs a database connection",
    "cannot use client_credentials",
    "exclude each other",
    "Send either ids",
    "The name of a database connection is expected",
    "The identifier of an API is expected",
    "is not an address or a network",
    "Invalid query",
    # Contents of keys, certificates and subjects, and the credentials that a client has.
    "Expected a public key or a certificate",
    "This is a private key",
    # URL, headers and signing secret of a webhook.
    "An address that begins with https:// is expected",
    "An address without user name and fragment is expected",
    "A name without a colon is expected",
    "The name of a header that the service does not set itself",
    "The signing secret is",
    "Expected one certificate in PEM",
    "NAME=value",
    "Expected either the subject",
    "Expected a time in the future",
    "Expected exactly one method",
    "has no such credential",
    "Null is for clients with",
    # Contents of files and maps, and comma-separated lists of known words.
    "The file ",
    "Unknown field",
    "Users have no field",
    "Only the members logo_url and colors",
    "Expected some of",
    "Expected event types",
    "Expected one of failed",
    # Invalid dates, and characters that no column accepts. Also white space, because dialects of regular expressions define it differently.
    "not of the form YYYY-MM-DD",
    "for format date-time",
    "for format uri",
    "for format strict-uri",
    "does not match pattern",
    "A scope must not contain spaces",
    "must not hold white space",
    "A lower-case slug",
    "Letters, digits and single inner hyphens",
    "Printable ASCII",
    # Invalid host names, and host names that the tenant may not claim or has not verified.
    "Expected a host name with a dot",
    "A lower-case host name",
    "The host belongs to the service",
    "are reserved for client certificates",
    "Expected a verified domain of the tenant",
    "NUL character",
    "64 bits",
)


class World:
    """A tenant with one row of each kind and some additional rows, behind a running service."""

    def __init__(self, web: WebProcess) -> None:
        self.base_url = f"http://{web.address[0]}:{web.address[1]}/api/v2"
        self.session = requests.Session()
        self.is_spent = True

    def renew(self) -> None:
        """Create a new tenant if a call has deleted some of the rows."""
        if not self.is_spent:
            return
        name = f"t-{secrets.token_hex(6)}"
        self.tenant = TenantFactory.create(id=name, name=name, host=f"{name}.example.test")
        self.api = Management(self.tenant)
        self.ids = ids_of(self.tenant, "own")
        people = make_connection(tenant_id=name, name="spare")
        linked = make_user(connection=people)
        users.link_users(tenant_id=name, primary_id=self.ids["user"], secondary_id=linked.user_id)
        self.identity = dict(zip(("provider", "user_id"), linked.user_id.split("|"), strict=True))
        audience = ApiResourceFactory.create(
            tenant_id=name, identifier="https://spare.example.test", scopes=[{"value": "read:orders"}]
        ).identifier
        self.spare = self.ids | {"connection": people.pk, "user": make_user(connection=people).user_id, "audience": audience}
        self.rows = digests_of(self.tenant)
        self.is_spent = False

    @property
    def headers(self) -> dict[str, str]:
        return {"Host": self.api.host, "Authorization": f"Bearer {self.api.token}"}

    def path_of(self, call: Call) -> dict[str, str]:
        """Return a value for each path parameter of the call. The values are ids of existing rows."""
        fixed = {name: value for name, value in FIXED.items() if f"{{{name}}}" in call.path}
        return (
            {name: self.ids[kind] for name, kind in call.parameters}
            | fixed
            | (self.identity if "{provider}/{user_id}" in call.path else {})
        )

    def send(self, case: Case) -> schemathesis.Response:
        """Send the case and check the answer. A refused request and a read must change nothing."""
        # A form contains only text. An object in a list is sent as the names of its members.
        unjudged: list[Any] = [negative_data_rejection] if "urlencoded" in (case.media_type or "") else []
        if is_unbuilt(case.method, case.operation.path):
            unjudged.append(unsupported_method)
        judges: list[Judge] = [refused_for_a_reason, stream_messages_are_described]
        answer = case.call_and_validate(
            base_url=self.base_url, session=self.session, headers=self.headers, additional_checks=judges, excluded_checks=unjudged
        )
        before, self.rows = self.rows, digests_of(self.tenant)
        if answer.status_code >= 400 or case.method.upper() == "GET":
            changed = sorted(table for table, digest in self.rows.items() if before.get(table) != digest)
            assert not changed, f"{case.method} {case.formatted_path} was {answer.status_code} and changed rows of {changed}"
        takes_away = case.method.upper() == "DELETE" or "revoke" in case.operation.path
        self.is_spent |= takes_away and self.rows != before
        return answer


def is_unbuilt(method: str, path: str) -> bool:
    """Report whether clients know this operation but the service lacks it. The answer is 404 with a reason (`test_upstream_table.py`)."""
    return unbuilt_at(method.upper(), f"/api/v2{path}".replace("{", "").replace("}", "")) is not None


def refused_for_a_reason(context: CheckContext, answer: schemathesis.Response, case: Case) -> bool | None:
    """Check that a valid request is refused only for reasons that no schema can express. Skip forms, because all their values are text."""
    is_good = case.meta is None or case.meta.generation.mode.is_positive
    if answer.status_code != 400 or not is_good or "urlencoded" in (case.media_type or ""):
        return None
    refusal = answer.json()
    is_formal = refusal.get("errorCode") in _FORMAL_CODES
    assert not is_formal or any(reason in refusal["message"] for reason in _UNSAID), refusal["message"]
    return None


def stream_messages_are_described(context: CheckContext, answer: schemathesis.Response, case: Case) -> bool | None:
    """Check that the document describes each message of a stream."""
    if answer.headers.get("content-type", [""])[0].startswith("text/event-stream"):
        lines = [line.removeprefix(b"data: ") for line in answer.content.splitlines() if line.startswith(b"data: ")]
        assert lines
        for line in lines:
            MESSAGE.validate(orjson.loads(line))
    return None


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with (
        django_db_blocker.unblock(),
        web_process("uvicorn", RATE_LIMITS_ENABLED="0", FAILED_AUTHENTICATIONS_PER_MINUTE="1000000") as running,
    ):
        yield running


@pytest.fixture(scope="module")
def world(web: WebProcess, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with django_db_blocker.unblock():
        found = World(web)
        yield found
        found.session.close()
        connections.close_all()


@pytest.fixture(autouse=True)
def _whole_world(world: World) -> None:
    world.renew()


_OPERATIONS = [(path, method) for path, methods in _DOCUMENT["paths"].items() for method in methods]
# Other tests cover a success and a refusal of each operation. A normal run tests a third of the operations, `make test-deep` tests all.
_DRAWN = set(sample(_OPERATIONS, "drawn", len(_OPERATIONS) // 3))
_PATHS = {path: {method: methods[method] for method in methods if (path, method) in _DRAWN} for path, methods in _DOCUMENT["paths"].items()}
_DRAWN_DOCUMENT = {**_DOCUMENT, "paths": {path: methods for path, methods in _PATHS.items() if methods}}
DRAWN = schemathesis.openapi.from_dict(_DRAWN_DOCUMENT, config=CONFIG)


@pytest.mark.sized
@pytest.mark.timeout(600)
@DRAWN.parametrize()
def test_the_document_describes_every_answer(case: Case, world: World) -> None:
    call = CALLS.get(f"{case.method.upper()} {case.operation.path}")
    if call is not None and not _keeps_its_path(case):
        case.path_parameters |= world.path_of(call)
    if case.meta is not None and case.meta.is_negative_at(ParameterLocation.QUERY):
        # The service treats an empty parameter of every type as absent.
        case.query = {name: value for name, value in case.query.items() if not _is_empty(value)}
    # `Content-Length` is handled by the HTTP server, whose errors are not JSON.
    case.headers.pop("Content-Length", None)
    # `send` compares the answer with the document.
    assert world.send(case).status_code < 500


def _is_empty(value: Any) -> bool:
    """Report whether a value is empty in a query. In a query, a list is sent as its members, and an object as the names of its members."""
    return value in ("", None) or (isinstance(value, (dict, list)) and all(map(_is_empty, value)))


def _keeps_its_path(case: Case) -> bool:
    """Report whether a request keeps its generated ids. Invalid ids are always kept; valid ids of unknown rows in a quarter of the
    cases."""
    is_bad = case.meta is not None and case.meta.is_negative_at(ParameterLocation.PATH)
    return is_bad or sha256(orjson.dumps(case.path_parameters, default=str)).digest()[0] % 4 == 0


# Later cases use the rows of earlier cases, so all cases must run.
@pytest.mark.whole
@pytest.mark.parametrize("label", CALLS)
def test_the_document_describes_every_success(label: str, world: World) -> None:
    call, (method, path) = CALLS[label], label.split(" ")
    body = {} if call.body is None else {"body": bodies(world.spare)[call.body], "media_type": "application/json"}
    if label in _FILES:
        body = {"body": {"connection_id": world.ids["connection"], "users": b"[]"}, "media_type": "multipart/form-data"}
    required = {"role_id": world.ids["role"], "email": "nobody@example.test", "permission_name": "read:orders"}
    required |= {"force": "true", "user_id": world.ids["user"], "identifier": "ada@example.test"}
    required["resource_server_identifier"] = world.ids["audience"]
    named = {
        parameter["name"] for parameter in _DOCUMENT["paths"][path][method.lower()].get("parameters", ()) if parameter["in"] == "query"
    }
    query = {name: value for name, value in required.items() if name in named}

    answer = world.send(SCHEMA[path][method].Case(path_parameters=world.path_of(call), query=query, **body))

    assert answer.status_code in (_IN_TIME | _REFUSED).get(label, range(200, 300)), answer.text


def test_a_method_that_the_document_does_not_describe_gets_405(world: World) -> None:
    # One test covers all paths, because comparing every row after each request would take five times as long as the requests.
    for path, methods in _DOCUMENT["paths"].items():
        described = {method.upper() for method in methods}
        address = re.sub(r"\{\w+\}", "x", f"{world.base_url}{path}")
        for method in sorted(METHODS - described):
            if is_unbuilt(method, path):
                continue
            answer = world.session.request(method, address, headers=world.headers, json={}, timeout=20)

            assert answer.status_code == 405, (method, path)
            assert {name.strip() for name in answer.headers["Allow"].split(",")} - {"HEAD"} == described, (method, path)
            assert answer.json()["statusCode"] == 405, (method, path)
    assert digests_of(world.tenant) == world.rows
