"""The mail server of a tenant, which is configured at /emails/provider. The tests send mails to an SMTP server over real sockets."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest
from django.core import mail

from identity.models import AuditEntry, Job, MessageProvider, Tenant, User
from identity.services.jobs import run_job
from tests.factories.models.identity import TenantFactory
from tests.identity.messages.mail_servers import Mailbox, smtp_server
from tests.management import Management

SECRET = "s3cret-of-the-mail-server"


def credentials(port: int = 587, **changed: Any) -> dict[str, Any]:
    return {"smtp_host": "127.0.0.1", "smtp_port": port, "smtp_user": "mailer", "smtp_pass": SECRET, **changed}


def provider(port: int = 587, **changed: Any) -> dict[str, Any]:
    return {"name": "smtp", "enabled": True, "default_from_address": "Shop <shop@example.com>", "credentials": credentials(port), **changed}


def verify(api: Management, ada: User) -> Job:
    job = api.post("jobs/verification-email", {"user_id": ada.user_id}).json["id"]
    assert run_job(job)
    return Job.objects.of(ada.tenant_id).get(pk=job)


def test_a_provider_is_created_read_changed_and_deleted(api: Management) -> None:
    missing = api.get("emails/provider")
    assert (missing.status, missing.json["errorCode"]) == (404, "inexistent_email_provider")
    assert api.patch("emails/provider", {"enabled": False}).status == 404
    assert api.post("emails/provider", provider()).status == 201
    assert api.post("emails/provider", provider()).status == 409
    assert api.get("emails/provider").json == {"name": "smtp", "enabled": True}
    whole = api.get("emails/provider", {"fields": "name,enabled,credentials,settings,default_from_address"}).json
    assert whole == {
        "name": "smtp",
        "enabled": True,
        "default_from_address": "Shop <shop@example.com>",
        "credentials": {"smtp_host": "127.0.0.1", "smtp_port": 587, "smtp_user": "mailer"},
        "settings": {},
    }
    assert api.patch("emails/provider", {"enabled": False, "settings": {"headers": {"X-SES-Configuration-Set": "a"}}}).status == 200
    assert api.get("emails/provider", {"fields": "enabled,settings"}).json == {
        "enabled": False,
        "settings": {"headers": {"X-SES-Configuration-Set": "a"}},
    }
    assert [api.delete("emails/provider").status for _ in range(2)] == [204, 204]
    assert api.get("emails/provider").status == 404


@pytest.mark.parametrize("name", ["mailgun", "mandrill", "sendgrid", "resend", "ses", "sparkpost", "azure_cs", "ms365", "custom"])
def test_the_refusal_of_an_unsupported_provider_contains_the_supported_names(api: Management, name: str) -> None:
    refused = api.post("emails/provider", {"name": name, "credentials": {"api_key": SECRET}})
    assert (refused.status, refused.json["errorCode"]) == (400, "operation_not_supported")
    assert "SMTP" in refused.json["message"]
    assert SECRET not in refused.body.decode()


@pytest.mark.parametrize(
    "body",
    [
        provider(credentials=credentials(smtp_host="")),
        provider(credentials=credentials(smtp_host="a b")),
        provider(credentials=credentials(smtp_host="host\r\nQUIT")),
        provider(credentials=credentials(smtp_host="user@host")),
        provider(credentials=credentials(smtp_port=0)),
        provider(credentials=credentials(smtp_port="587")),
        provider(credentials=credentials(smtp_port=True)),
        provider(credentials=credentials(smtp_user="a\nb")),
        provider(credentials=credentials(smtp_pass="")),
        provider(credentials=credentials(api_key="x")),
        provider(default_from_address="no address"),
        provider(settings={"headers": {"Bcc": "all@example.com"}}),
        provider(settings={"headers": {"X-A": "a\r\nBcc: all@example.com"}}),
        provider(settings={"message": {}}),
        provider(surplus=1),
        {"name": "smtp"},
    ],
    ids=range(16),
)
def test_an_invalid_provider_is_refused(api: Management, body: dict[str, Any]) -> None:
    refused = api.post("emails/provider", body)
    assert refused.status == 400
    assert SECRET not in refused.body.decode()
    assert api.get("emails/provider").status == 404


def test_each_operation_requires_its_scope(tenant: Tenant) -> None:
    api = Management(tenant, scope="read:users")
    answers = [api.get("emails/provider"), api.post("emails/provider", {}), api.patch("emails/provider", {}), api.delete("emails/provider")]
    assert [answer.status for answer in answers] == [403] * 4


def test_the_password_of_the_mail_server_is_never_readable(api: Management, tenant: Tenant) -> None:
    api.post("emails/provider", provider())
    api.patch("emails/provider", {"credentials": {"smtp_pass": SECRET + "2"}})
    row = MessageProvider.objects.of(tenant.pk).get()
    assert row.secret("smtp_pass") == SECRET + "2"
    columns = MessageProvider.objects.of(tenant.pk).values().get()
    entries = list(AuditEntry.objects.filter(tenant_id=tenant.pk, object_type="identity.messageprovider").values())
    assert entries
    for text in (str(columns), str(entries), api.get("emails/provider", {"fields": "credentials"}).body.decode()):
        assert SECRET not in text


def test_a_change_of_the_host_or_port_or_user_requires_the_password_again(api: Management, tenant: Tenant) -> None:
    api.post("emails/provider", provider())
    for changed in ({"smtp_host": "evil.example"}, {"smtp_port": 2525}, {"smtp_user": "other"}):
        refused = api.patch("emails/provider", {"credentials": changed})
        assert refused.status == 400
        assert "smtp_pass" in refused.json["message"]
    assert MessageProvider.objects.of(tenant.pk).get().settings["smtp_host"] == "127.0.0.1"
    moved = api.patch("emails/provider", {"credentials": {"smtp_host": "other.example", "smtp_pass": "another"}})
    assert moved.status == 200


def test_a_secret_of_another_tenant_cannot_be_opened(api: Management, tenant: Tenant) -> None:
    api.post("emails/provider", provider())
    other = TenantFactory.create()
    row = MessageProvider.objects.of(tenant.pk).get()
    stolen = MessageProvider(tenant_id=other.pk, channel=row.channel, name=row.name, sealed_settings=row.sealed_settings)
    with pytest.raises(RuntimeError):
        stolen.secret("smtp_pass")


@pytest.mark.usefixtures("reachable")
def test_mails_use_the_sender_and_headers_of_the_provider(api: Management, ada: User) -> None:
    mailbox = Mailbox(accounts={"mailer": SECRET})
    with smtp_server(mailbox) as port:
        api.post("emails/provider", provider(port, settings={"headers": {"X-Campaign": "one"}}))
        job = verify(api, ada)
    assert (job.status, job.summary["delivery"]) == ("completed", "sent")
    (sent,) = mailbox.mails
    assert (sent["to"], sent["from"], sent["x-campaign"]) == ("ada@example.test", "Shop <shop@example.com>", "one")
    assert [part.get_content_type() for part in sent.iter_parts()] == ["text/plain", "text/html"]
    assert mail.outbox == []


@pytest.mark.usefixtures("reachable")
def test_the_mail_server_of_the_service_sends_mails_while_the_provider_is_disabled(api: Management, ada: User) -> None:
    api.post("emails/provider", provider(enabled=False))
    verify(api, ada)
    (sent,) = mail.outbox
    assert sent.from_email.endswith("<no-reply@localhost>")


@pytest.mark.usefixtures("reachable")
def test_a_wrong_password_ends_the_job_and_the_error_does_not_contain_the_password(api: Management, ada: User) -> None:
    mailbox = Mailbox(accounts={"mailer": "right"})
    with smtp_server(mailbox) as port:
        api.post("emails/provider", provider(port))
        job = verify(api, ada)
    assert job.status == "failed"
    assert "refuses the username or the password (code 535)" in job.status_details
    assert SECRET not in str(Job.objects.of(ada.tenant_id).values().get(pk=job.pk))


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize(("answer", "outcome"), [("451 later", "waiting"), ("550 never", "dropped")])
def test_the_reply_of_the_server_determines_whether_a_mail_is_retried(api: Management, ada: User, answer: str, outcome: str) -> None:
    with smtp_server(Mailbox(answer=answer)) as port:
        api.post("emails/provider", provider(port, credentials=credentials(port, smtp_user="", smtp_pass=None)))
        job = verify(api, ada)
    assert (job.summary["delivery"], job.has_effect_due) == (outcome, outcome == "waiting")


@pytest.mark.usefixtures("reachable")
def test_a_mail_whose_reply_is_lost_is_not_sent_again(api: Management, ada: User) -> None:
    mailbox = Mailbox(cuts_off=True)
    with smtp_server(mailbox) as port:
        api.post("emails/provider", provider(port, credentials=credentials(port, smtp_user="", smtp_pass=None)))
        job = verify(api, ada)
        assert run_job(job.pk)
    assert len(mailbox.mails) == 1
    assert job.summary["delivery"] == "in_doubt"


def test_a_mail_server_on_a_private_network_is_not_contacted(api: Management, ada: User, settings: Any) -> None:
    settings.OUTBOUND_PRIVATE_NETWORKS, settings.OUTBOUND_ALLOW_HTTP = [], True
    mailbox = Mailbox()
    with smtp_server(mailbox) as port:
        for host in ("127.0.0.1", "localhost", "::1"):
            api.delete("emails/provider")
            own = credentials(port, smtp_host=host)
            assert api.post("emails/provider", provider(credentials=own)).status == 201
            job = verify(api, ada)
            assert job.status_details == "The mail server has an address that the service may not reach."
    assert (mailbox.mails, mailbox.logins) == ([], [])


def test_a_mail_server_without_tls_gets_no_password(api: Management, ada: User, settings: Any) -> None:
    settings.OUTBOUND_PRIVATE_NETWORKS, settings.OUTBOUND_ALLOW_HTTP = ["127.0.0.0/8"], False
    mailbox = Mailbox(accounts={"mailer": SECRET})
    with smtp_server(mailbox) as port:
        api.post("emails/provider", provider(port))
        job = verify(api, ada)
    assert "offers no TLS" in job.status_details
    assert (mailbox.mails, mailbox.logins) == ([], [])


@pytest.mark.usefixtures("reachable")
def test_the_connection_to_a_server_that_sends_endless_data_is_closed(api: Management, ada: User) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_talk, args=(listener,), daemon=True).start()
        port = listener.getsockname()[1]
        api.post("emails/provider", provider(port))
        began = time.monotonic()
        job = verify(api, ada)
    assert time.monotonic() - began < 15
    assert job.summary["delivery"] == "waiting"


def _talk(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        try:
            while True:
                connection.sendall(b"220-and so on\r\n" * 100)
        except OSError:
            return
