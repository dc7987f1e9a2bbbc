"""Deliveries of webhooks to a real HTTP server: the requests, the failure class of each response, and the stored exchanges."""

from __future__ import annotations

import json
from typing import Any

import pytest

from events.models import EventStream
from identity.models import Tenant
from provisioning.engine import delivering, lanes, streams
from provisioning.engine.dispatch import dispatch_stream
from provisioning.models import Attempt, Delivery, WebhookSecrets
from provisioning.webhooks.signature import signature
from tests.factories.scim import MisbehavingServer, misbehaving_server, reply, sequence
from tests.management import Management
from tests.provisioning.engine.logs import append_events

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TOKEN = "a-token-that-nobody-may-see"


def bind(tenant: Tenant, url: str) -> EventStream:
    return streams.create_stream(
        tenant_id=tenant.pk,
        subscriptions=["user.updated"],
        destination_type="webhook",
        destination={
            "webhook_endpoint": url,
            "webhook_authorization": {"method": "bearer", "token": TOKEN},
            "webhook_signature": {"method": "standard-webhooks", "secret": SECRET},
        },
    )


def deliver_one(tenant: Tenant, *answers: Any) -> tuple[MisbehavingServer, Delivery]:
    with misbehaving_server(sequence(*answers)) as server:
        stream = bind(tenant, f"http://127.0.0.1:{server.port}/in?key=in-the-query")
        append_events(tenant, ["user:a"])
        dispatch_stream(stream.pk)
        claim = lanes.claim_oldest(stream.pk)
        assert claim is not None
        delivering.deliver_claim(claim, delivering.Turn())
        return server, Delivery.objects.get(stream_id=stream.pk)


def test_the_stored_bytes_are_sent_signed_and_with_the_authorization_header(tenant: Tenant) -> None:
    server, delivery = deliver_one(tenant, reply(202))
    (request,) = server.received
    assert (request.verb, request.target) == ("POST", "/in?key=in-the-query")
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["content-type"] == "application/json; charset=utf-8"
    assert request.headers["webhook-id"] == delivery.event_id
    timestamp = int(request.headers["webhook-timestamp"])
    expected = signature(SECRET, message_id=delivery.event_id, timestamp=timestamp, body=request.body)
    assert request.headers["webhook-signature"] == expected
    envelope = json.loads(request.body)
    assert (envelope["id"], envelope["x0stream"]) == (delivery.event_id, delivery.stream_id)
    assert (delivery.state, delivery.is_written, delivery.detail) == ("delivered", True, {"status": 202})


@pytest.mark.parametrize(
    ("status", "error_class"), [(400, "data"), (401, "configuration"), (302, "configuration"), (429, "transient"), (503, "transient")]
)
def test_each_response_has_its_failure_class_and_the_delivery_waits(tenant: Tenant, status: int, error_class: str) -> None:
    server, delivery = deliver_one(tenant, reply(status, headers={"Location": "http://127.0.0.1/elsewhere"}))
    assert len(server.received) == 1
    assert (delivery.state, delivery.error_class, delivery.error_status) == ("todo", error_class, status)


def test_a_failed_attempt_stores_the_exchange_without_its_secrets(tenant: Tenant) -> None:
    _, delivery = deliver_one(tenant, reply(500, raw=f"no: {TOKEN}".encode()))
    kept = json.dumps(Attempt.objects.get(delivery=delivery).exchanges)
    assert '"path": "/in"' in kept
    assert "no: ***" in kept
    for secret in (TOKEN, SECRET, "in-the-query"):
        assert secret not in kept


def test_the_management_interface_never_returns_the_secrets_of_a_destination(tenant: Tenant) -> None:
    api = Management(tenant)
    destination: dict[str, Any] = {
        "type": "webhook",
        "configuration": {
            "webhook_endpoint": "https://hooks.example.test/in",
            "webhook_authorization": {"method": "basic", "username": "ada", "password": TOKEN},
        },
    }
    created = api.post("event-streams", {"subscriptions": [{"event_type": "user.created"}], "destination": destination})
    assert created.status == 201, created.body
    assert created.json["destination"]["configuration"] == {
        "webhook_endpoint": "https://hooks.example.test/in",
        "webhook_authorization": {"method": "basic", "username": "ada"},
    }
    path = f"event-streams/{created.json['id']}"
    before = WebhookSecrets.objects.get(pk=created.json["id"]).sealed
    assert TOKEN not in before
    destination["configuration"]["webhook_authorization"] = {"method": "bearer", "token": "rotated"}
    changed = api.patch(path, {"destination": destination})
    assert changed.json["destination"]["configuration"]["webhook_authorization"] == {"method": "bearer"}
    assert WebhookSecrets.objects.get(pk=created.json["id"]).sealed != before
    destination["configuration"]["webhook_endpoint"] = "ftp://hooks.example.test"
    refused = api.patch(path, {"destination": destination})
    assert (refused.status, refused.json["errorCode"]) == (400, "invalid_body")
    assert "destination.configuration.webhook_endpoint" in refused.json["message"]
    assert api.delete(path).status == 204
    assert not WebhookSecrets.objects.filter(pk=created.json["id"]).exists()


def test_a_webhook_without_its_secrets_holds_the_stream(tenant: Tenant) -> None:
    stream = bind(tenant, "http://127.0.0.1:1/")
    WebhookSecrets.objects.all().filter(pk=stream.pk).delete()
    append_events(tenant, ["user:a"])
    dispatch_stream(stream.pk)
    claim = lanes.claim_oldest(stream.pk)
    assert claim is not None
    delivering.deliver_claim(claim, delivering.Turn())
    stream.refresh_from_db()
    assert "secrets of the webhook" in stream.held_reason
