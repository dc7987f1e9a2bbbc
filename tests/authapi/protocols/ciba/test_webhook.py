"""The webhook that notifies users of a tenant about approvals, over real sockets: each request is signed, sent once, and never sent to a
private network."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from typing import Any

import pytest
from django.core import mail

from authapi.models import TenantSettings
from authapi.services.tenant_settings import update_tenant_settings
from identity.models import Job
from identity.services.jobs import run_job
from tests.authapi.memory import forget_all
from tests.authapi.protocols.ciba.conftest import CallCenter
from tests.identity.messages.mail_servers import Gateway, http_gateway

SECRET = "a-secret-of-twenty-four-characters"


def told_by(center: CallCenter, url: str) -> None:
    notifier = {"channel": "webhook", "webhook_url": url, "webhook_secret": SECRET}
    update_tenant_settings(tenant_id=center.tenant.pk, changes={"backchannel_authentication": notifier})
    forget_all()


def job_of(center: CallCenter) -> Job:
    return Job.objects.of(center.tenant.pk).get(type=Job.Type.MESSAGE)


@pytest.fixture
def reachable(settings: Any) -> None:
    settings.OUTBOUND_PRIVATE_NETWORKS, settings.OUTBOUND_ALLOW_HTTP = ["127.0.0.0/8"], True


@pytest.mark.usefixtures("reachable")
def test_the_server_gets_one_signed_request_and_its_link_opens_the_approval(center: CallCenter) -> None:
    gateway = Gateway()
    with http_gateway(gateway) as url:
        told_by(center, f"{url}/ciba")
        assert center.refusal(requested_expiry="301") == (400, "invalid_request")
        center.begun = center.start().json()
        job = job_of(center)
        assert "21-49-38" not in str(job.parameters)
        for _ in range(2):
            assert run_job(job.pk)
    (request,) = gateway.requests
    written = json.loads(request.body)
    assert written["type"] == "backchannel_authentication.requested"
    assert written["data"]["user"]["user_id"] == center.user.user_id
    assert (written["data"]["binding_message"], written["data"]["client"]["name"]) == ("21-49-38", "Call center")
    assert center.begun["auth_req_id"] not in str(written)
    names = {name.lower(): value for name, value in request.headers.items()}
    signed = f"{names['webhook-id']}.{names['webhook-timestamp']}.".encode() + request.body
    signature = base64.b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
    assert names["webhook-signature"] == f"v1,{signature}"
    assert mail.outbox == []
    assert (job_of(center).summary["delivery"], "sealed" in job_of(center).parameters) == ("sent", False)
    link = re.sub(r"^https?://[^/]+", "", written["data"]["url"])
    assert center.answer(link).location.endswith("/approve/done")
    assert center.poll().status == 200


def test_a_private_address_and_a_removed_webhook_get_no_request(center: CallCenter) -> None:
    told_by(center, "https://10.1.2.3/ciba")
    center.begun = center.start().json()
    run_job(job_of(center).pk)
    assert job_of(center).summary["delivery"] == "dropped"
    job_of(center).delete()
    center.start()
    update_tenant_settings(tenant_id=center.tenant.pk, changes={"backchannel_authentication": None})
    forget_all()
    run_job(job_of(center).pk)
    assert "no longer has a webhook" in job_of(center).status_details


def test_a_webhook_without_its_secret_is_reported_as_incomplete(center: CallCenter) -> None:
    told_by(center, "https://hooks.example.test/")
    TenantSettings.objects.of(center.tenant.pk).update(sealed_values={})
    assert "its address or its secret is missing" in center.start().json()["error_description"]
