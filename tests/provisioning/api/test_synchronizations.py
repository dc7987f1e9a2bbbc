"""The endpoints of the management interface for synchronizations."""

from __future__ import annotations

import pytest

from events.models import EventStream
from identity.models import Connection, Job, Tenant
from identity.services.jobs import run_job
from provisioning.engine.streams import create_stream
from provisioning.synchronization import work  # noqa: F401  (registers the jobs)
from tests.factories.identity import make_user
from tests.factories.scim import Received, Wire, by_verb, listing, misbehaving_server, reply, user
from tests.management import Management
from tests.provisioning.synchronization.conftest import stream_to


@pytest.fixture
def scim(tenant: Tenant) -> EventStream:
    """Return a disabled stream to a server that is not running."""
    return stream_to(tenant, "http://127.0.0.1:1")


def test_a_synchronization_is_read_like_any_other_job(api: Management, tenant: Tenant, database_connection: Connection) -> None:
    make_user(connection=database_connection, email="anna@example.test")
    make_user(connection=database_connection, email=None, phone_number="+4712345678")
    with misbehaving_server(by_verb(GET=listing())) as server:
        stream = stream_to(tenant, server.base_url)
        answer = api.post(f"event-streams/{stream.pk}/synchronizations", {"mode": "dry_run", "rate_per_second": 1000})
        assert (answer.status, answer.json["type"], answer.json["status"]) == (202, "stream_synchronization", "pending")
        run_job(answer.json["id"])
    job = api.get(f"jobs/{answer.json['id']}").json
    assert (job["status"], job["percentage_done"]) == ("completed", 100)
    # The scope `read:event_streams` is required. The scope `read:users` is not sufficient.
    assert Management(tenant, scope="read:event_streams").get(f"jobs/{job['id']}").status == 200
    assert Management(tenant, scope="read:users").get(f"jobs/{job['id']}").status == 403
    assert job["summary"] == {"total": 2, "created": 1, "skipped": 1, "extra": 0, "deleted": 0}


def test_the_job_contains_the_requested_plan(api: Management, tenant: Tenant, scim: EventStream) -> None:
    body = {
        "mode": "write",
        "match": "employeeNumber=app_metadata.number",
        "rate_per_second": 5,
        "enable_stream": True,
        "delete_missing": True,
        "deletion_limit": "5%",
    }
    answer = api.post(f"event-streams/{scim.pk}/synchronizations", body)
    assert answer.status == 202, answer.body
    plan = Job.objects.of(tenant.pk).get(pk=answer.json["id"]).parameters["plan"]
    assert (plan["match"], plan["rate"], plan["deletion_limit"]) == ("employeeNumber=app_metadata.number", 5, "5%")
    assert (plan["enables_stream"], plan["deletes_missing"], plan["is_dry_run"]) == (True, True, False)
    again = api.post(f"event-streams/{scim.pk}/synchronizations", {})
    assert (again.status, api.patch(f"event-streams/{scim.pk}", {"status": "enabled"}).status) == (409, 409)


@pytest.mark.parametrize(
    "body",
    [
        {"enable_stream": True},
        {"mode": "all"},
        {"match": "employeeNumber"},
        {"rate_per_second": 0},
        {"deletion_limit": "all"},
        {"mode": "compare", "enable_stream": True},
        {"x": 1},
    ],
)
def test_an_impossible_plan_is_refused(body: dict[str, object], api: Management, scim: EventStream) -> None:
    assert api.post(f"event-streams/{scim.pk}/synchronizations", body).status == 400


def started(api: Management, stream: EventStream, **body: object) -> str:
    answer = api.post(f"event-streams/{stream.pk}/synchronizations", {"rate_per_second": 1000, **body})
    assert answer.status == 202, answer.body
    return f"event-streams/{stream.pk}/synchronizations/{answer.json['id']}"


def said_by(place: str, name: str) -> str:
    """Return the name of the account that made a decision, as the job stores it."""
    return str(Job.all_tenants.get(pk=place.rpartition("/")[2]).parameters.get(name, ""))


def work_on(place: str) -> None:
    """Run the job of the synchronization until it has ended or waits, as a worker does."""
    run_job(place.rpartition("/")[2])


def test_the_default_mode_writes_nothing_and_reports_the_changes(api: Management, tenant: Tenant, database_connection: Connection) -> None:
    anna = make_user(connection=database_connection, email="anna@example.test")
    with misbehaving_server(by_verb(GET=listing())) as server:
        stream = stream_to(tenant, server.base_url)
        place = started(api, stream)
        work_on(place)
        assert {request.verb for request in server.received} == {"GET"}
    shown = api.get(place).json
    assert (shown["mode"], shown["status"], shown["outcomes"]) == ("dry_run", "completed", {"created": 1})
    assert shown["plan"] == {
        "match": "userName",
        "rate_per_second": 1000,
        "enable_stream": False,
        "delete_missing": False,
        "deletion_limit": "10",
    }
    report = api.get(f"{place}/report?per_page=1").json
    assert (report["total"], report["results"]) == (1, [{"outcome": "created", "user_id": anna.user_id}])
    listed = api.get(f"event-streams/{stream.pk}/synchronizations").json
    assert [one["id"] for one in listed["synchronizations"]] == [shown["id"]]


def test_a_stopped_synchronization_shows_its_reason_and_can_be_resumed(
    api: Management, tenant: Tenant, database_connection: Connection
) -> None:
    for name in ("anna", "bert", "cleo", "dora"):
        make_user(connection=database_connection, email=f"{name}@example.test")
    with misbehaving_server(by_verb(GET=reply(401))) as server:
        place = started(api, stream_to(tenant, server.base_url))
        work_on(place)
        stopped = api.get(place).json
        assert (stopped["status"], stopped["waits_for"]) == ("processing", "resume")
        assert "Stopped:" in stopped["status_details"]
        for wrong in ("confirm", "decline"):
            assert api.post(f"{place}/{wrong}").status == 409
        server.handler = by_verb(GET=listing())
        resumed = api.post(f"{place}/resume")
        assert (resumed.status, "waits_for" in resumed.json) == (202, False)
        assert api.post(f"{place}/resume").status == 409
        work_on(place)
    assert api.get(place).json["status"] == "completed"
    assert said_by(place, "resumed_by") == f"client {api.client.client_id}"


@pytest.mark.parametrize(("answer", "deleted"), [("confirm", 1), ("decline", 0)])
def test_staged_deletions_wait_for_a_decision(
    answer: str, deleted: int, api: Management, tenant: Tenant, database_connection: Connection
) -> None:
    gone = user("id-9", externalId="database|aaaaaaaaaaaaaaaaaaaaaaaa", userName="gone@example.test")

    def found(request: Received) -> Wire:
        return listing(gone) if not request.filter or "aaaaaaaa" in request.filter else listing()

    with misbehaving_server(by_verb(GET=found, DELETE=reply(204))) as server:
        place = started(api, stream_to(tenant, server.base_url), mode="write", delete_missing=True, deletion_limit="0")
        work_on(place)
        waiting = api.get(place).json
        assert (waiting["waits_for"], waiting["outcomes"]) == ("confirmation", {"extra": 1})
        assert not [request for request in server.received if request.verb == "DELETE"]
        assert api.post(f"{place}/resume").status == 409
        assert api.post(f"{place}/{answer}").status == 202
        work_on(place)
        assert len([request for request in server.received if request.verb == "DELETE"]) == deleted
    done = api.get(place).json
    who = {"confirm": "confirmed_by", "decline": "declined_by"}
    assert {said: said_by(place, name) for said, name in who.items() if said_by(place, name)} == {answer: f"client {api.client.client_id}"}
    assert (done["status"], done["outcomes"]) == ("completed", {"deleted": 1} if deleted else {"extra": 1})


def test_a_synchronization_can_be_canceled_only_once(api: Management, scim: EventStream) -> None:
    place = started(api, scim)
    cancelled = api.post(f"{place}/cancel")
    assert (cancelled.status, cancelled.json["status"]) == (202, "failed")
    assert "Canceled by client" in cancelled.json["status_details"]
    for answer in ("cancel", "resume", "confirm", "decline"):
        assert api.post(f"{place}/{answer}").status == 409


def test_a_job_of_another_stream_or_type_is_not_found(api: Management, tenant: Tenant, scim: EventStream) -> None:
    place = started(api, scim)
    other = create_stream(
        tenant_id=tenant.pk, name="other", subscriptions=["user.created"], destination_type="action", destination=scim.destination
    )
    job_id = place.rpartition("/")[2]
    export = api.post("jobs/users-exports", {}).json["id"]
    for wrong in (f"event-streams/{other.pk}/synchronizations/{job_id}", f"event-streams/{scim.pk}/synchronizations/{export}"):
        assert [api.get(wrong).status, api.get(f"{wrong}/report").status, api.post(f"{wrong}/cancel").status] == [404, 404, 404]
    assert api.get(place).json["status"] == "pending"


def test_reading_and_deciding_require_different_scopes(tenant: Tenant, scim: EventStream) -> None:
    reader, writer = Management(tenant, scope="read:event_streams"), Management(tenant, scope="update:event_streams")
    place = started(writer, scim)
    assert [reader.get(place).status, reader.get(f"{place}/report").status] == [200, 200]
    assert [writer.get(place).status, reader.post(f"{place}/cancel").status, writer.post(f"{place}/cancel").status] == [403, 403, 202]


def test_a_synchronization_requires_the_permission_to_change_the_stream(tenant: Tenant, scim: EventStream) -> None:
    reader = Management(tenant, scope="read:event_streams")
    assert reader.post(f"event-streams/{scim.pk}/synchronizations", {}).status == 403
