"""The senders of text messages: the wire format of Twilio, signed webhooks, files and the console, and how the sender is chosen."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from config.settings.sms_url import sms_settings
from identity.messages.numbers import CountryRefused
from identity.messages.outcomes import TextsNotConfigured
from identity.messages.providers import create_provider, update_provider
from identity.messages.queue import can_send, queue_message
from identity.messages.text_senders import countries_for
from identity.models import Connection, Job, MessageProvider, Tenant
from identity.services.failures import Invalid
from identity.services.jobs import run_job
from tests.factories.models.identity import ConnectionFactory
from tests.identity.messages.mail_servers import Gateway, http_gateway

NUMBER = "+4915112345678"
CODE = "493817"
TOKEN = "a-token-of-twilio"


def sms_connection(tenant: Tenant, **options: Any) -> Connection:
    connection = ConnectionFactory.create(tenant_id=tenant.pk, name="texts", strategy="sms")
    connection.set_options(options)
    connection.save()
    return connection


def sent(tenant: Tenant, connection: Connection | None = None, **changed: Any) -> Job:
    asked: dict[str, Any] = {"kind": "passwordless_sms", "channel": "sms", "recipient": NUMBER, "context": {"code": CODE, "send": "code"}}
    job = queue_message(tenant_id=tenant.pk, connection=connection, **{**asked, **changed})
    assert CODE not in str(Job.objects.of(tenant.pk).values().get(pk=job.pk))
    assert run_job(job.pk)
    return Job.objects.of(tenant.pk).get(pk=job.pk)


@pytest.mark.usefixtures("reachable")
def test_twilio_gets_the_message_in_its_wire_format(tenant: Tenant, settings: Any) -> None:
    gateway = Gateway()
    connection = sms_connection(
        tenant, provider="twilio", twilio_sid="AC123", twilio_token=TOKEN, template="Code {{ code }}", **{"from": "+15005550006"}
    )
    assert TOKEN not in str(Connection.objects.of(tenant.pk).values().get(pk=connection.pk))
    with http_gateway(gateway) as settings.TWILIO_BASE_URL:
        job = sent(tenant, connection)
    (request,) = gateway.requests
    assert request.path == "/2010-04-01/Accounts/AC123/Messages.json"
    assert request.headers["authorization"] == "Basic " + base64.b64encode(f"AC123:{TOKEN}".encode()).decode()
    assert request.form == {"To": NUMBER, "Body": f"Code {CODE}", "From": "+15005550006"}
    assert (job.status, job.summary["delivery"], "sealed" in job.parameters) == ("completed", "sent", False)


@pytest.mark.usefixtures("reachable")
def test_twilio_gets_the_messaging_service_if_it_is_configured(tenant: Tenant, settings: Any) -> None:
    gateway = Gateway()
    connection = sms_connection(tenant, twilio_sid="AC123", twilio_token=TOKEN, messaging_service_sid="MG1", **{"from": "+15005550006"})
    with http_gateway(gateway) as settings.TWILIO_BASE_URL:
        sent(tenant, connection, language="en")
    assert "From" not in gateway.requests[0].form
    assert gateway.requests[0].form["MessagingServiceSid"] == "MG1"
    assert gateway.requests[0].form["Body"].startswith(f"{CODE} is your code for ")


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (429, 20429, "waiting"),
        (400, 30001, "waiting"),
        (503, 20503, "waiting"),
        (400, 21211, "dropped"),
        (400, 21610, "dropped"),
        (400, 21408, "dropped"),
        (401, 20003, "dropped"),
        (404, 20404, "dropped"),
        (400, 0, "dropped"),
        (500, 20500, "in_doubt"),
    ],
)
def test_the_error_of_twilio_determines_whether_a_message_is_retried(
    tenant: Tenant, settings: Any, status: int, code: int, outcome: str
) -> None:
    gateway = Gateway(lambda _request: (status, {"code": code, "message": f"The number {NUMBER} is odd"}))
    connection = sms_connection(tenant, twilio_sid="AC123", twilio_token=TOKEN, **{"from": "+15005550006"})
    with http_gateway(gateway) as settings.TWILIO_BASE_URL:
        job = sent(tenant, connection)
    assert (job.summary["delivery"], job.has_effect_due) == (outcome, outcome == "waiting")
    assert NUMBER not in job.status_details
    assert "sealed" in job.parameters or outcome != "waiting"


@pytest.mark.usefixtures("reachable")
def test_a_message_whose_response_is_lost_is_not_sent_again(tenant: Tenant, settings: Any) -> None:
    gateway = Gateway(lambda _request: None)
    connection = sms_connection(tenant, twilio_sid="AC123", twilio_token=TOKEN, **{"from": "+15005550006"})
    with http_gateway(gateway) as settings.TWILIO_BASE_URL:
        job = sent(tenant, connection)
        for _ in range(2):
            assert run_job(job.pk)
    assert len(gateway.requests) == 1
    assert (job.summary["delivery"], "sealed" in job.parameters) == ("in_doubt", False)


@pytest.mark.usefixtures("reachable")
def test_a_message_to_an_unreachable_provider_is_retried(tenant: Tenant, settings: Any) -> None:
    connection = sms_connection(tenant, twilio_sid="AC123", twilio_token=TOKEN, **{"from": "+15005550006"})
    settings.TWILIO_BASE_URL = "http://127.0.0.1:9"
    job = sent(tenant, connection)
    assert (job.summary["delivery"], job.has_effect_due) == ("waiting", True)
    gateway = Gateway()
    with http_gateway(gateway) as settings.TWILIO_BASE_URL:
        assert run_job(job.pk)
        assert run_job(job.pk)
    assert len(gateway.requests) == 1


@pytest.mark.usefixtures("reachable")
def test_a_gateway_gets_a_signed_message_and_a_token(tenant: Tenant) -> None:
    gateway = Gateway()
    secret = "a-secret-of-the-gateway-that-is-long"
    with http_gateway(gateway) as address:
        connection = sms_connection(
            tenant,
            provider="sms_gateway",
            gateway_url=f"{address}/send",
            gateway_authentication={"method": "bearer", "subject": "us", "audience": "them", "secret": secret},
            syntax="md_with_macros",
            template="@@password@@ is the code",
            **{"from": "Shop"},
        )
        job = sent(tenant, connection)
    (request,) = gateway.requests
    assert json.loads(request.body) == {"recipient": NUMBER, "body": f"{CODE} is the code", "sender": "Shop"}
    stamp, message_id = request.headers["webhook-timestamp"], request.headers["webhook-id"]
    assert (message_id, abs(int(stamp) - time.time()) < 60) == (job.pk, True)
    signed = hmac.new(secret.encode(), f"{message_id}.{stamp}.".encode() + request.body, hashlib.sha256).digest()
    assert request.headers["webhook-signature"] == "v1," + base64.b64encode(signed).decode()
    claims = jwt.decode(request.headers["authorization"].removeprefix("Bearer "), OctKey.import_key(secret), algorithms=["HS256"]).claims
    assert (claims["sub"], claims["aud"], claims["exp"] - claims["iat"]) == ("us", "them", 60)


@pytest.mark.parametrize("address", ["https://127.0.0.1/", "https://169.254.169.254/latest", "https://[::1]/", "https://10.0.0.1:8080/"])
def test_a_gateway_on_a_private_network_is_not_contacted(tenant: Tenant, settings: Any, address: str) -> None:
    settings.OUTBOUND_PRIVATE_NETWORKS = []
    job = sent(tenant, sms_connection(tenant, provider="sms_gateway", gateway_url=address, gateway_authentication={"secret": "x" * 20}))
    assert (job.status, job.summary["delivery"]) == ("failed", "dropped")
    assert "may not reach" in job.status_details


def test_the_file_sender_writes_the_message_into_a_private_file(tenant: Tenant, settings: Any, tmp_path: Path) -> None:
    settings.SMS_SENDER = sms_settings(f"file:{tmp_path}/outbox")
    sent(tenant)
    (file,) = (tmp_path / "outbox").iterdir()
    written = json.loads(file.read_text())
    assert (written["to"], CODE in written["body"]) == (NUMBER, True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_console_sender_prints_the_message(tenant: Tenant, settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    settings.SMS_SENDER = sms_settings("console:")
    sent(tenant)
    assert f"Text message to {NUMBER}\n{CODE} is your code" in capsys.readouterr().out


def test_no_message_is_queued_without_a_sender(tenant: Tenant, settings: Any) -> None:
    settings.SMS_SENDER = {}
    assert not can_send(tenant.pk, "sms")
    with pytest.raises(TextsNotConfigured):
        queue_message(tenant_id=tenant.pk, kind="passwordless_sms", channel="sms", recipient=NUMBER, context={})


@pytest.mark.usefixtures("reachable")
def test_the_provider_of_the_tenant_has_precedence_over_the_provider_of_the_platform(tenant: Tenant, settings: Any) -> None:
    settings.SMS_SENDER = sms_settings("console:")
    gateway = Gateway()
    with http_gateway(gateway) as address:
        create_provider(
            tenant_id=tenant.pk,
            channel="sms",
            name=MessageProvider.Name.WEBHOOK,
            settings={"url": f"{address}/texts"},
            secrets={"secret": "shared-secret"},
        )
        sent(tenant)
        with pytest.raises(Invalid, match="would be sent elsewhere"):
            update_provider(tenant_id=tenant.pk, channel="sms", settings={"url": f"{address}/elsewhere"})
    assert [request.path for request in gateway.requests] == ["/texts"]
    assert "shared-secret" not in str(MessageProvider.objects.of(tenant.pk).values().get())


def test_a_country_must_be_in_every_configured_list_of_allowed_countries(tenant: Tenant, settings: Any) -> None:
    settings.SMS_SENDER = sms_settings("console:")
    connection = sms_connection(tenant, allowed_countries=["DE", "US"])
    assert countries_for(tenant.pk) == ()
    assert countries_for(tenant.pk, connection) == ("DE", "US")
    settings.SMS_COUNTRIES = ["US", "CA"]
    assert countries_for(tenant.pk, connection) == ("US",)
    settings.SMS_COUNTRIES = ["FR"]
    assert countries_for(tenant.pk, connection) == ("ZZ",)
    with pytest.raises(CountryRefused):
        queue_message(
            tenant_id=tenant.pk, kind="passwordless_sms", channel="sms", recipient=NUMBER, context={"code": CODE}, connection=connection
        )
    assert not Job.objects.of(tenant.pk).exists()


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("", None),
        ("console:", "console"),
        ("file:/var/outbox", "file"),
        ("twilio://AC1:token@api.twilio.com?from=+15005550006", "twilio"),
        ("twilio://AC1:token@api.twilio.com?messaging_service_sid=MG1", "twilio"),
        ("webhook+https://secret@gateway.example/send?x=1", "webhook"),
    ],
)
def test_the_setting_determines_the_sender_of_the_platform(url: str, kind: str | None) -> None:
    found = sms_settings(url)
    assert found.get("kind") == kind
    if kind == "twilio":
        assert found["base_url"] == "https://api.twilio.com"
        assert found["sender"] == "+15005550006" or found["service"] == "MG1"
    if kind == "webhook":
        assert (found["url"], found["key"]) == ("https://gateway.example/send?x=1", "secret")
