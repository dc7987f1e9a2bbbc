"""The messages that users receive: the sender and the texts of the connection, and the branding of the login's organization."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core import mail
from django.core.mail import EmailMultiAlternatives

from authapi.looks.current import remembered_organizations
from authapi.services.clients import update_client
from identity.messages.providers import create_provider
from identity.models import Job, MessageProvider
from identity.services.memberships import add_connection
from identity.services.organizations import create_organization
from tests.authapi.browser import Browser
from tests.authapi.passwordless.conftest import ADA, NUMBER, Door, set_options
from tests.authapi.passwordless.messages import deliver, last_code, last_contents
from tests.authapi.passwordless.test_pages import Visit
from tests.identity.messages.conftest import reachable as reachable
from tests.identity.messages.mail_servers import Gateway, http_gateway

BY_TEXT: dict[str, Any] = {"connection": "sms", "email": None, "phone_number": NUMBER}
LOGO = "https://cdn.example.test/acme.png"


@pytest.mark.usefixtures("reachable")
def test_a_code_is_sent_by_the_sender_of_its_connection_with_its_texts(door: Door) -> None:
    own, shared = Gateway(), Gateway()
    with http_gateway(own) as address, http_gateway(shared) as others:
        create_provider(
            tenant_id=door.tenant.pk,
            channel="sms",
            name=MessageProvider.Name.WEBHOOK,
            settings={"url": others},
            secrets={"secret": "s" * 32},
        )
        set_options(
            door.sms,
            provider="sms_gateway",
            gateway_url=address,
            template="Kurbelwelle: @@password@@",
            syntax="md_with_macros",
            **{"from": "Shop"},
        )
        code = door.code(**BY_TEXT)
        deliver(door.tenant.pk)
    [request] = own.requests
    assert json.loads(request.body) == {"recipient": NUMBER, "body": f"Kurbelwelle: {code}", "sender": "Shop"}
    assert shared.requests == []


@pytest.mark.usefixtures("reachable")
def test_a_connection_can_have_a_sender_if_the_platform_has_none(door: Door, settings: Any) -> None:
    settings.SMS_SENDER = {}
    assert door.start(**BY_TEXT).json()["error"] == "sms_provider_error"
    gateway = Gateway()
    with http_gateway(gateway) as address:
        set_options(door.sms, provider="sms_gateway", gateway_url=address)
        code = door.code(**BY_TEXT)
        deliver(door.tenant.pk)
    [request] = gateway.requests
    assert code in json.loads(request.body)["body"]


def test_a_mail_uses_the_subject_and_body_of_its_connection(door: Door) -> None:
    set_options(door.email, email={"subject": "{{ code }} for you", "body": "<b>{{ code }}</b> {{ user.name }}", "syntax": "liquid"})
    code = door.code()
    deliver(door.tenant.pk)
    message = mail.outbox[-1]
    assert isinstance(message, EmailMultiAlternatives)
    assert (message.to, message.subject) == ([ADA], f"{code} for you")
    assert message.alternatives[0][0] == f"<b>{code}</b> "


def test_the_mail_of_a_login_for_an_organization_has_the_branding_of_the_organization(door: Door) -> None:
    remembered_organizations.clear()
    branding = {"logo_url": LOGO, "colors": {"primary": "#ffee00", "page_background": "#ffffff"}}
    acme = create_organization(tenant_id=door.tenant.pk, name="acme", display_name="Acme", branding=branding)
    add_connection(tenant_id=door.tenant.pk, organization_id=acme.pk, connection_id=door.email.pk)
    update_client(tenant_id=door.tenant.pk, client_id=door.client.client_id, changes={"settings": {"organization_usage": "allow"}})
    visit = Visit(door, Browser(door.tenant))
    visit.enter_address(visit.ask(organization=acme.pk))
    code = last_code(door.tenant.pk)
    deliver(door.tenant.pk)
    message = mail.outbox[-1]
    assert isinstance(message, EmailMultiAlternatives)
    html = str(message.alternatives[0][0])
    assert f'<img src="{LOGO}"' in html
    assert "background-color:#ffee00" not in html  # Only a button has the branding color, and a mail with a code has no button.
    assert code in html
    visit.enter_address(visit.ask(organization=acme.pk), send="link", email=ADA)
    deliver(door.tenant.pk)
    message = mail.outbox[-1]
    assert isinstance(message, EmailMultiAlternatives)
    assert "background-color:#ffee00" in str(message.alternatives[0][0])


def test_the_job_of_a_message_without_a_sender_fails_without_showing_the_code(door: Door, settings: Any) -> None:
    code = door.code(**BY_TEXT)
    settings.SMS_SENDER = {}
    deliver(door.tenant.pk)
    [job] = Job.objects.of(door.tenant.pk)
    assert job.status == "failed"
    assert code not in f"{job.parameters} {job.summary} {vars(job)}"
    assert "sealed" not in job.parameters


def test_a_text_message_has_a_code_but_no_link_and_the_code_is_not_stored(door: Door) -> None:
    code = door.code(**BY_TEXT)
    assert last_contents(door.tenant.pk).link == ""
    deliver(door.tenant.pk)
    assert code not in str(list(Job.objects.of(door.tenant.pk).values()))
