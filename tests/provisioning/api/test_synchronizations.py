"""Synchronisations over the wire."""

from __future__ import annotations

import pytest

from events.models import EventStream
from identity.models import Connection, Job, Tenant
from identity.services.jobs import run_job
from provisioning.backfill import work  # noqa: F401  (it registers what the jobs do)
from tests.factories.identity import make_user
from tests.factories.scim import by_verb, listing, misbehaving_server
from tests.management import Management
from tests.provisioning.backfill.conftest import stream_to


@pytest.fixture
def scim(tenant: Tenant) -> EventStream:
    """A disabled stream to a server that nobody starts."""
    return stream_to(tenant, "http://127.0.0.1:1")


def test_a_synchronisation_is_a_job_that_is_read_like_any_other(api: Management, tenant: Tenant, database_connection: Connection) -> None:
    make_user(connection=database_connection, email="anna@example.test")
    make_user(connection=database_connection, email=None, phone_number="+4712345678")
    with misbehaving_server(by_verb(GET=listing())) as server:
        stream = stream_to(tenant, server.base_url)
        answer = api.post(f"event-streams/{stream.pk}/synchronizations", {"mode": "dry_run", "rate_per_second": 1000})
        assert (answer.status, answer.json["type"], answer.json["status"]) == (202, "stream_synchronization", "pending")
        run_job(answer.json["id"])
    job = api.get(f"jobs/{answer.json['id']}").json
    assert (job["status"], job["percentage_done"]) == ("completed", 100)
    assert job["summary"] == {"total": 2, "created": 1, "skipped": 1, "extra": 0, "deleted": 0}


def test_what_is_asked_for_is_what_the_job_does(api: Management, tenant: Tenant, scim: EventStream) -> None:
    body = {
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
    [{"match": "employeeNumber"}, {"rate_per_second": 0}, {"deletion_limit": "all"}, {"mode": "compare", "enable_stream": True}, {"x": 1}],
)
def test_an_impossible_one_is_refused(body: dict[str, object], api: Management, scim: EventStream) -> None:
    assert api.post(f"event-streams/{scim.pk}/synchronizations", body).status == 400


def test_it_needs_the_right_to_change_the_stream(tenant: Tenant, scim: EventStream) -> None:
    reader = Management(tenant, scope="read:event_streams")
    assert reader.post(f"event-streams/{scim.pk}/synchronizations", {}).status == 403
