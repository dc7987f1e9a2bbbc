"""The form of an event stream, which sends to an action or a webhook. Secrets are never shown, and never sent to a new URL."""

from __future__ import annotations

import base64
import html
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from events.models import EventStream
from identity.models import Tenant
from provisioning.actions.secrets import open_webhook
from provisioning.engine.streams import create_stream
from tests.factories.actions import make_deployed_action
from tests.factories.admin import browser_of, new_staff

ADD = "admin:events_eventstream_add"
TOKEN = "never-to-be-seen-again-4711"
KEY = "whsec_" + base64.b64encode(b"k" * 32).decode()
ENDPOINT = "https://hooks.example.test/in"
NEW: dict[str, Any] = {
    "name": "hook",
    "subscriptions": ["user.created"],
    "destination_type": "webhook",
    "webhook_endpoint": ENDPOINT,
    "method": "bearer",
    "token": TOKEN,
}
SAME = {name: NEW[name] for name in ("name", "subscriptions", "webhook_endpoint", "method")}


@pytest.fixture(autouse=True)
def _plain(settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = False
    settings.OUTBOUND_ALLOW_HTTP = False


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


@pytest.fixture
def stream(tenant: Tenant) -> EventStream:
    configuration = {
        "webhook_endpoint": ENDPOINT,
        "webhook_authorization": {"method": "bearer", "token": TOKEN},
        "webhook_signature": {"method": "standard-webhooks", "secret": KEY},
    }
    return create_stream(
        tenant_id=tenant.pk, name="hook", subscriptions=["user.created"], destination_type="webhook", destination=configuration
    )


def page(stream: EventStream) -> str:
    return reverse("admin:events_eventstream_change", args=(quote(stream.pk),))


def shown(answer: Any) -> str:
    return html.unescape(answer.content.decode())


def secrets_of(stream: EventStream) -> dict[str, str]:
    return open_webhook(tenant_id=stream.tenant_id, stream_id=stream.pk).secrets


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"webhook_endpoint": ""}, "This field is required"),
        ({"webhook_endpoint": "http://hooks.example.test"}, "begins with https://"),
        ({"webhook_endpoint": "https://me:pw@hooks.example.test"}, "without a user name"),
        ({"token": ""}, "This field is required"),
        ({"token": "line\r\nbreak"}, "Printable ASCII"),
        ({"method": "basic", "username": "a:b", "password": "p"}, "without a colon"),
        ({"method": "basic", "username": "", "password": "p"}, "This field is required"),
        ({"method": "custom_header", "header_key": "Host", "header_value": "v"}, "does not set itself"),
        ({"signing_secret": "short"}, "whsec_"),
        ({"destination_type": "action"}, "Choose the action"),
        ({"destination_type": "eventbridge"}, "Select a valid choice"),
    ],
)
def test_an_invalid_destination_is_refused_with_an_explanation(
    sent: dict[str, str], sentence: str, browser: Client, tenant: Tenant
) -> None:
    answer = browser.post(reverse(ADD), {**NEW, **sent})

    assert answer.status_code == 200
    assert "errorlist" in shown(answer)
    assert sentence in shown(answer)
    assert TOKEN not in shown(answer)
    assert not EventStream.objects.of(tenant.pk).filter(name="hook").exists()


@pytest.mark.parametrize(
    ("sent", "authorization", "secrets"),
    [
        ({}, {"method": "bearer"}, {"token": TOKEN}),
        (
            {"method": "basic", "username": "us", "password": " p w "},
            {"method": "basic", "username": "us"},
            {"password": " p w "},
        ),
        (
            {"method": "custom_header", "header_key": "X-Api-Key", "header_value": "v-1", "signing_secret": KEY},
            {"method": "custom_header", "header_key": "X-Api-Key"},
            {"header_value": "v-1", "signing_secret": KEY},
        ),
    ],
)
def test_a_stream_to_a_webhook_is_created_with_its_secrets_sealed(
    sent: dict[str, str], authorization: dict[str, str], secrets: dict[str, str], browser: Client, tenant: Tenant
) -> None:
    answer = browser.post(reverse(ADD), {**NEW, **sent})
    assert answer.status_code == 302, shown(answer)
    stream = EventStream.objects.of(tenant.pk).get(name="hook")

    assert stream.destination["webhook_authorization"] == authorization
    assert secrets_of(stream) == secrets
    assert not [value for value in secrets.values() if value in shown(browser.get(page(stream)))]


def test_empty_secret_fields_keep_the_secrets(browser: Client, stream: EventStream) -> None:
    assert browser.post(page(stream), {**SAME, "name": "other"}).status_code == 302

    stream.refresh_from_db()
    assert (stream.name, secrets_of(stream)) == ("other", {"token": TOKEN, "signing_secret": KEY})


def test_a_new_secret_replaces_the_old_secret_and_the_signing_secret_is_kept(browser: Client, stream: EventStream) -> None:
    assert browser.post(page(stream), {**SAME, "token": "another-4712"}).status_code == 302
    assert secrets_of(stream) == {"token": "another-4712", "signing_secret": KEY}

    assert browser.post(page(stream), {**SAME, "is_unsigned": "on"}).status_code == 302
    assert secrets_of(stream) == {"token": "another-4712"}
    stream.refresh_from_db()
    assert "webhook_signature" not in stream.destination


def test_a_stored_secret_is_never_sent_to_another_url(browser: Client, stream: EventStream) -> None:
    moved = {**SAME, "webhook_endpoint": "https://thief.example.test/in"}
    answer = browser.post(page(stream), moved)
    assert "Enter the secret again" in shown(answer)
    stream.refresh_from_db()
    assert stream.destination["webhook_endpoint"] == ENDPOINT

    assert browser.post(page(stream), {**moved, "token": "for-there-4713"}).status_code == 302
    stream.refresh_from_db()
    assert stream.destination["webhook_endpoint"] == moved["webhook_endpoint"]
    assert secrets_of(stream)["token"] == "for-there-4713"


def test_the_kind_of_a_destination_cannot_be_changed(browser: Client, stream: EventStream, tenant: Tenant) -> None:
    action = make_deployed_action(tenant)
    browser.post(page(stream), {**SAME, "destination_type": "action", "action": str(action.pk)})

    stream.refresh_from_db()
    assert (stream.destination_type, stream.destination["webhook_endpoint"]) == ("webhook", ENDPOINT)


def test_the_page_shows_the_source_addresses_of_requests(browser: Client, stream: EventStream, settings: Settings) -> None:
    assert "OUTBOUND_ADDRESSES" in shown(browser.get(page(stream)))
    settings.OUTBOUND_ADDRESSES = ["eu=203.0.113.7", "us=203.0.113.8"]

    assert "eu: 203.0.113.7, us: 203.0.113.8" in shown(browser.get(page(stream)))
