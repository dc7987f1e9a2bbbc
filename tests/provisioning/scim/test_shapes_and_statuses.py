"""The status and the body of a response determine the failure class and the next step. No write follows a malformed response."""

from __future__ import annotations

from typing import Any

import pytest

from provisioning.runs.failures import InvalidResponseShape
from tests.factories.scim import ERROR, LIST, by_verb, listing, misbehaving_server, reply, scim_error, sequence, user
from tests.factories.scim_runs import run_event

ANNA_THERE = listing(user("1", externalId="database|anna"))
NOTHING = listing()


@pytest.mark.parametrize(
    "answer",
    [
        reply(201, {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"]}),
        reply(201, {"id": 17}),
        reply(201, {"id": " "}),
        reply(201, {"id": None}),
        reply(201, ["1"]),
        reply(201, "1"),
        reply(201),
        reply(202),
        reply(204),
        reply(200, raw=b"<html>Welcome</html>"),
        reply(201, raw=b'{"id": "1"'),
        reply(201, raw=b'{"id": "\xff"}'),
        reply(201, {"id": "1", "schemas": [ERROR]}),
        reply(201, {"id": "1", "schemas": "User"}),
    ],
)
def test_a_created_user_without_a_string_id_is_an_invalid_response(answer: bytes) -> None:
    with misbehaving_server(sequence(answer)) as server:
        ran = run_event(server.base_url)
        assert isinstance(ran.failed, InvalidResponseShape)
        assert "invalid response shape" in str(ran.failed)
        assert ran.failed.kind == "shape"
        assert server.lines == ["POST /Users"]


@pytest.mark.parametrize("status", [200, 201, 203])
def test_a_create_with_any_2xx_and_a_string_id_is_valid(status: int) -> None:
    with misbehaving_server(sequence(reply(status, {"id": "77"}))) as server:
        ran = run_event(server.base_url)
    assert ran.result is not None
    assert (ran.reason, ran.result.detail["scim_id"]) == ("created", "77")
    assert any("other than 201" in line["message"] for line in ran.lines) is (status != 201)


@pytest.mark.parametrize(
    "answer",
    [
        reply(200, {"schemas": [LIST], "totalResults": 0}),
        reply(200, {"Resources": None}),
        reply(200, {"Resources": {"id": "1"}}),
        reply(200, {"Resources": [{"id": "1", "externalId": "database|anna"}, {"id": 2}]}),
        reply(200, {"Resources": [{"externalId": "database|anna"}]}),
        reply(200, {"Resources": ["1"]}),
        reply(200, {"Resources": [], "schemas": [ERROR]}),
        reply(200, [user("1", externalId="database|anna")]),
        reply(200, raw=b"<html>Sign in</html>"),
        reply(204),
    ],
)
@pytest.mark.parametrize("event_type", ["user.updated", "user.deleted"])
def test_an_invalid_list_is_an_invalid_response_and_nothing_is_written(answer: bytes, event_type: str) -> None:
    with misbehaving_server(sequence(answer)) as server:
        ran = run_event(server.base_url, event_type, options={"upsert": True})
        assert isinstance(ran.failed, InvalidResponseShape)
        assert "invalid response shape" in str(ran.failed)
        assert server.lines == ["GET /Users"]


def test_a_list_without_schemas_is_accepted_or_refused_by_its_content() -> None:
    with misbehaving_server(by_verb(GET=reply(200, {"Resources": [{"id": "1", "externalId": "database|anna"}]}), PUT=reply(204))) as server:
        assert run_event(server.base_url, "user.updated").reason == "updated"


@pytest.mark.parametrize(("mode", "verb"), [("put", "PUT"), ("patch", "PATCH"), ("patch_per_attribute", "PATCH")])
@pytest.mark.parametrize(
    ("answer", "is_valid"),
    [
        (reply(204), True),
        (reply(200, user("1")), True),
        (reply(201, user("1")), True),
        (reply(200, user("2")), False),
        (reply(200), False),
        (reply(202), False),
        (reply(200, {"id": 1}), False),
        (reply(200, raw=b"<html></html>"), False),
        (reply(206, user("1")), False),
    ],
)
def test_the_valid_response_to_a_write_is_204_or_the_written_user(mode: str, verb: str, answer: bytes, is_valid: bool) -> None:
    with misbehaving_server(by_verb(GET=ANNA_THERE, **{verb: answer})) as server:
        ran = run_event(server.base_url, "user.updated", options={"update_mode": mode})
    if is_valid:
        assert ran.reason == "updated"
    else:
        assert isinstance(ran.failed, InvalidResponseShape)
        assert "invalid response shape" in str(ran.failed)


@pytest.mark.parametrize("status", [200, 202, 204])
def test_the_valid_responses_to_a_delete_are_200_202_and_204(status: int) -> None:
    with misbehaving_server(by_verb(GET=ANNA_THERE, DELETE=reply(status, {"done": True} if status == 200 else None))) as server:
        assert run_event(server.base_url, "user.deleted").reason == "deleted"


@pytest.mark.parametrize(
    ("status", "kind", "tries"),
    [
        (301, "configuration", 1),
        (302, "configuration", 1),
        (307, "configuration", 1),
        (400, "data", 1),
        (401, "configuration", 1),
        (403, "configuration", 1),
        (404, "configuration", 1),
        (405, "configuration", 1),
        (408, "transient", 1),
        (413, "data", 1),
        (422, "data", 1),
        (425, "transient", 1),
        (429, "transient", 2),
        (500, "transient", 2),
        (501, "configuration", 2),
        (502, "transient", 2),
        (503, "transient", 2),
        (504, "transient", 2),
        (599, "transient", 2),
    ],
)
def test_the_status_of_a_create_determines_the_failure_class_and_the_repeats(status: int, kind: str, tries: int) -> None:
    handler = by_verb(POST=scim_error(status, "tooMany", Location="http://127.0.0.1:9/elsewhere"), GET=NOTHING)
    with misbehaving_server(handler) as server:
        ran = run_event(server.base_url)
        assert (ran.failed.kind, ran.failed.status, ran.failed.scim_type) == (kind, status, "tooMany")
        assert ran.failed.detail == "refused"
        assert server.lines.count("POST /Users") == tries


@pytest.mark.parametrize("verb", ["PUT", "DELETE"])
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply(404, raw=b"<html>Not Found</html>"), "configuration"),
        (reply(404), "configuration"),
        (scim_error(405), "configuration"),
        (reply(301, headers={"Location": "/scim/v2/elsewhere"}), "configuration"),
        (reply(302, headers={"Location": "/scim/v2/elsewhere"}), "configuration"),
        (reply(307, headers={"Location": "/scim/v2/elsewhere"}), "configuration"),
    ],
)
def test_a_missing_route_or_a_redirect_is_a_configuration_failure(verb: str, answer: bytes, kind: str) -> None:
    with misbehaving_server(by_verb(GET=ANNA_THERE, **{verb: answer})) as server:
        ran = run_event(server.base_url, "user.updated" if verb == "PUT" else "user.deleted", options={"upsert": True})
        assert ran.failed.kind == kind
        assert server.lines.count(f"{verb} /Users/1") == 1
        assert not [line for line in server.lines if "elsewhere" in line or line.startswith("POST")]


def test_a_scim_404_on_delete_means_that_the_user_was_already_deleted() -> None:
    with misbehaving_server(by_verb(GET=ANNA_THERE, DELETE=scim_error(404))) as server:
        ran = run_event(server.base_url, "user.deleted")
    assert ran.result is not None
    assert (ran.result.status, ran.reason) == ("skipped", "already gone")


def test_a_delete_that_gets_an_error_counts_as_done_if_a_lookup_finds_no_user() -> None:
    with misbehaving_server(by_verb(GET=sequence(ANNA_THERE, NOTHING, scim_error(404)), DELETE=scim_error(500))) as server:
        ran = run_event(server.base_url, "user.deleted")
        assert ran.reason == "deleted"
        assert server.lines == ["GET /Users", "DELETE /Users/1", "DELETE /Users/1", "GET /Users", "GET /Users/1"]


def test_a_delete_that_gets_an_error_fails_if_a_read_by_id_still_finds_the_user() -> None:
    there = reply(200, user("1", externalId="database|anna"))
    with misbehaving_server(by_verb(GET=sequence(ANNA_THERE, NOTHING, there), DELETE=scim_error(500))) as server:
        assert run_event(server.base_url, "user.deleted").failed.status == 500


def test_a_scim_404_on_put_causes_one_more_lookup_before_the_user_counts_as_missing() -> None:
    with misbehaving_server(by_verb(GET=sequence(ANNA_THERE, NOTHING), PUT=scim_error(404), POST=reply(201, user("9")))) as server:
        ran = run_event(server.base_url, "user.updated", options={"upsert": True})
        assert ran.reason == "created-from-update"
        assert server.lines == ["GET /Users", "PUT /Users/1", "GET /Users", "POST /Users"]


def test_a_scim_404_on_put_for_a_user_that_is_still_listed_raises_an_error() -> None:
    with misbehaving_server(by_verb(GET=ANNA_THERE, PUT=scim_error(404))) as server:
        ran = run_event(server.base_url, "user.updated")
        assert (ran.failed.class_name, ran.failed.kind) == ("ResourceGone", "data")
        assert server.lines == ["GET /Users", "PUT /Users/1", "GET /Users"]


def test_a_409_without_a_scim_type_is_treated_as_a_conflict() -> None:
    with misbehaving_server(by_verb(POST=reply(409, {"message": "duplicate key"}), GET=NOTHING)) as server:
        ran = run_event(server.base_url)
    assert (ran.failed.class_name, ran.failed.kind, ran.failed.scim_type) == ("Conflict", "data", "")


def test_a_409_raises_an_error_if_the_lookup_after_it_fails() -> None:
    with misbehaving_server(by_verb(POST=scim_error(409, "uniqueness"), GET=scim_error(503))) as server:
        ran = run_event(server.base_url)
    assert ran.failed.status == 409
    assert getattr(ran.failed.__cause__, "status", None) == 503


def test_the_description_of_a_scim_1_error_becomes_the_detail() -> None:
    with misbehaving_server(sequence(reply(400, {"Errors": [{"description": "no such attribute", "code": "400"}]}))) as server:
        assert run_event(server.base_url).failed.detail == "no such attribute"


@pytest.mark.parametrize("identifier", ["..", ".", "a\x00b", "x" * 10_240])
@pytest.mark.parametrize("event_type", ["user.updated", "user.deleted"])
def test_an_id_that_cannot_be_part_of_a_path_is_never_sent(identifier: str, event_type: str) -> None:
    with misbehaving_server(sequence(listing(user(identifier, externalId="database|anna")))) as server:
        ran = run_event(server.base_url, event_type)
        assert ran.failed.kind == "data"
        assert server.lines == ["GET /Users"]


@pytest.mark.parametrize(
    ("identifier", "path"),
    [("a/b", "a%2Fb"), ("a?b#c", "a%3Fb%23c"), ("a%2e", "a%252e"), ("anna@example.test", "anna%40example.test"), ("...", "...")],
)
def test_an_unusual_id_is_one_segment_of_the_path(identifier: str, path: str) -> None:
    with misbehaving_server(by_verb(GET=listing(user(identifier, externalId="database|anna")), DELETE=reply(204))) as server:
        assert run_event(server.base_url, "user.deleted").reason == "deleted"
        assert server.received[-1].target == f"/scim/v2/Users/{path}"


def test_requests_have_the_headers_that_servers_require() -> None:
    with misbehaving_server(by_verb(GET=ANNA_THERE, PUT=reply(204))) as server:
        run_event(server.base_url, "user.updated")
        lookup, write = server.received
    assert lookup.headers["accept"] == write.headers["content-type"] == "application/scim+json"
    assert "content-type" not in lookup.headers
    assert write.headers["authorization"].startswith("Bearer ")
    assert write.headers["user-agent"].startswith("identity-provisioning/")
    assert write.headers["x-correlation-id"] == "evt_1234567890123456789012"


def test_a_patch_without_a_path_replaces_the_whole_user() -> None:
    with misbehaving_server(by_verb(GET=ANNA_THERE, PATCH=reply(204))) as server:
        run_event(server.base_url, "user.updated", options={"update_mode": "patch"})
        body: dict[str, Any] = server.received[-1].json
    assert body["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:PatchOp"]
    assert [operation["op"] for operation in body["Operations"]] == ["replace"]
    assert body["Operations"][0].keys() == {"op", "value"}
    assert body["Operations"][0]["value"]["externalId"] == "database|anna"


def test_upsert_updates_the_user_that_a_conflict_reveals() -> None:
    handler = by_verb(GET=sequence(NOTHING, ANNA_THERE), POST=scim_error(409), PUT=reply(204))
    with misbehaving_server(handler) as server:
        assert run_event(server.base_url, "user.updated", options={"upsert": True}).reason == "updated"
        assert server.lines == ["GET /Users", "POST /Users", "GET /Users", "PUT /Users/1"]
