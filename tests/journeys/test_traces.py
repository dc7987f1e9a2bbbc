"""A trace contains all steps from a request to the response of the SCIM server, in all processes of a real service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.factories.trace_collector import Collector, ReceivedSpan, collector
from tests.journeys.service import Service, eventually
from tests.ports import free_port

STEPS = {"events.record", "events.number", "provisioning.dispatch", "provisioning.attempt"}


@pytest.fixture(scope="module")
def received() -> Iterator[Collector]:
    with collector() as running:
        yield running


@pytest.fixture(scope="module")
def traced_service(received: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("traces"), free_port())
    running.environment |= {"TRACING_ENDPOINT": received.endpoint, "TRACING_SERVICE_NAME": "traced"}
    try:
        running.up()
        yield running
    finally:
        running.down()


def test_one_trace_contains_the_change_of_a_user_and_the_request_to_the_scim_server(traced_service: Service, received: Collector) -> None:
    user = traced_service.create_user("trace-me@example.test", given_name="Secretname")
    eventually(lambda: traced_service.scim_users(user["user_id"]), what="the user in the SCIM server")
    path = f"/users/{user['user_id'].replace('|', '%7C')}"
    answer = traced_service.call("PATCH", path, {"given_name": "Othername"}, allow_redirects=False)
    assert answer.status_code == 200

    def finished() -> list[ReceivedSpan]:
        for request in [span for span in received.spans if span.name.startswith("PATCH /api/v2/users/")]:
            spans = received.of_trace(request.trace_id)
            if {span.name for span in spans} >= STEPS and any(span.name.startswith("SCIM PUT") for span in spans):
                return spans
        return []

    spans: list[ReceivedSpan] = eventually(finished, what="the whole trace")

    by_id = {span.span_id: span for span in spans}
    [root] = [span for span in spans if not span.parent_id]
    assert root.name.startswith("PATCH /api/v2/users/")
    assert root.attributes["http.response.status_code"] == 200
    # Every span except the first has a parent, which is also in the trace.
    assert all(span.parent_id in by_id for span in spans if span is not root)
    [record] = [span for span in spans if span.name == "events.record"]
    assert record.parent_id == root.span_id
    [attempt] = [span for span in spans if span.name == "provisioning.attempt"]
    assert {span.parent_id for span in spans if span.name in STEPS - {"events.record"}} == {record.span_id}
    assert attempt.attributes["result"] == "delivered"
    assert attempt.attributes["event.type"] == "user.updated"
    [write] = [span for span in spans if span.name.startswith("SCIM PUT")]
    assert (write.parent_id, write.attributes["http.response.status_code"]) == (attempt.span_id, 200)
    assert {span.service for span in spans} == {"traced"}


def test_spans_contain_no_address_no_name_and_no_secret(traced_service: Service, received: Collector) -> None:
    assert received.spans
    everything = "\n".join(span.whole for span in received.spans)
    facts = traced_service.facts
    for word in ("trace-me@", "Secretname", "Othername", facts["scim_bearer_token"], facts["client_secret"], traced_service.token):
        assert word not in everything
