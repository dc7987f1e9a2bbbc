"""The pages of mails and text messages: their texts, previews, test mails to the staff who request them, and senders."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse

from identity.models import AuditEntry, Job, MessageProvider, MessageTemplate, Staff, Tenant
from identity.services.jobs import run_job
from identity.staff_roles import AUDITOR
from tests.factories.admin import browser_of, new_staff, new_tenant
from tests.factories.models.identity import MessageTemplateFactory

SECRET = "s3cret-of-the-mail-server"
TEXT = {
    "is_enabled": "on",
    "subject": "Own subject",
    "body": "<p>Own {{ url }}</p>",
    "from_address": "",
    "includes_email_in_redirect": "on",
}


def at(what: str, name: str = "verify_email", language: str = "") -> str:
    address = reverse(f"admin:identity_messages{what}", kwargs={"name": name} if what else {})
    return f"{address}?language={language}" if language else address


@pytest.fixture
def staff(tenant: Tenant) -> Staff:
    return new_staff(tenant)


@pytest.fixture
def browser(staff: Staff) -> Client:
    return browser_of(staff)


def test_every_message_is_listed_with_its_state(browser: Client, tenant: Tenant) -> None:
    MessageTemplateFactory.create(tenant_id=tenant.pk, name="verify_email", language="de")
    page = browser.get(at("")).content.decode()
    for text in ("Verification of an address", "Welcome", "Blocked account", "Text message", "stolen_credentials", "Default", "Off"):
        assert text in page


def test_a_text_can_be_saved_in_one_language_and_reset_to_the_default(browser: Client, tenant: Tenant) -> None:
    saved = browser.post(at("_one", language="de"), {**TEXT, "subject": "Deutsch"}, follow=True)
    assert "Text saved." in saved.content.decode()
    row = MessageTemplate.objects.of(tenant.pk).get()
    assert (row.language, row.subject, row.is_enabled) == ("de", "Deutsch", True)
    asked = browser.get(at("_reset", language="de")).content.decode()
    assert "This cannot be undone" in asked
    assert MessageTemplate.objects.of(tenant.pk).exists()
    browser.post(at("_reset", language="de"))
    assert not MessageTemplate.objects.of(tenant.pk).exists()
    assert AuditEntry.objects.filter(tenant_id=tenant.pk, object_type="identity.messagetemplate").count() == 2


def test_an_invalid_text_is_refused_at_its_field(browser: Client, tenant: Tenant) -> None:
    page = browser.post(at("_one"), {**TEXT, "body": "{{ url | nope }}"}).content.decode()
    assert "unknown filter" in page
    assert not MessageTemplate.objects.of(tenant.pk).exists()


def test_a_mail_can_be_switched_on_with_its_default_text(browser: Client, tenant: Tenant) -> None:
    browser.post(at("_one", "welcome_email"), {"is_enabled": "on"})
    assert MessageTemplate.objects.of(tenant.pk).get().is_enabled


@pytest.mark.parametrize(
    "name", ["verify_email", "reset_email", "welcome_email", "blocked_account", "user_invitation", "passwordless_email", "passwordless_sms"]
)
def test_the_preview_of_every_message_contains_no_active_content(browser: Client, name: str) -> None:
    answer = browser.get(at("_preview", name))
    assert answer.status_code == 200
    policy = answer["Content-Security-Policy"]
    assert policy.startswith("sandbox; default-src 'none'")
    assert "script-src" not in policy
    assert "allow-" not in policy
    assert answer["X-Frame-Options"] == "SAMEORIGIN"


def test_the_preview_shows_unsaved_text(browser: Client, tenant: Tenant) -> None:
    shown = browser.post(at("_preview"), {**TEXT, "body": "<p>Draft {{ user.name }}</p><script>1</script>"}).content.decode()
    assert "Draft Ada Lovelace" in shown
    broken = browser.post(at("_preview"), {**TEXT, "body": "{% include 'x' %}"}).content.decode()
    assert "unexpected tag" in broken
    assert not MessageTemplate.objects.of(tenant.pk).exists()


def test_the_page_shows_the_preview_in_a_sandboxed_frame(browser: Client) -> None:
    page = browser.get(at("_one")).content.decode()
    assert 'sandbox=""' in page.replace("\n", " ")
    assert "user.user_metadata" in page


def test_a_test_mail_is_sent_only_to_the_staff_account_that_requests_it(browser: Client, tenant: Tenant, staff: Staff) -> None:
    MessageTemplateFactory.create(tenant_id=tenant.pk, name="verify_email", subject="Own", body="<p>{{ user.name }}</p>")
    browser.post(at("_test"), {"to": "victim@example.com", "email": "victim@example.com", "recipient": "victim@example.com"})
    job = Job.objects.of(tenant.pk).get()
    assert run_job(job.pk)
    (sent,) = mail.outbox
    assert (sent.recipients(), sent.subject) == ([staff.email], "[Test] Own")


def test_the_number_of_test_mails_is_limited(browser: Client, tenant: Tenant) -> None:
    for _ in range(7):
        answer = browser.post(at("_test"), follow=True)
    assert Job.objects.of(tenant.pk).count() == 5
    assert "Wait a little" in answer.content.decode()


def test_no_test_text_message_can_be_sent(browser: Client, tenant: Tenant) -> None:
    assert browser.post(at("_test", "passwordless_sms")).status_code == 404
    assert browser.get(at("_test")).status_code == 405
    assert not Job.objects.of(tenant.pk).exists()


def test_an_auditor_sees_the_pages_and_changes_nothing(tenant: Tenant) -> None:
    auditor = browser_of(new_staff(tenant, AUDITOR))
    assert auditor.get(at("_one")).status_code == 200
    assert auditor.get(reverse("admin:identity_senders")).status_code == 200
    assert auditor.post(at("_one"), TEXT).status_code == 200
    for address in (at("_test"), at("_reset"), reverse("admin:identity_senders_one", kwargs={"channel": "email"})):
        assert auditor.post(address, TEXT).status_code == 403
    assert not MessageTemplate.objects.of(tenant.pk).exists()


def test_a_text_of_another_tenant_is_not_shown(browser: Client) -> None:
    other = new_tenant()
    MessageTemplateFactory.create(tenant_id=other.pk, name="verify_email", subject="Of the other", body="<p>Of the other</p>")
    for address in (at(""), at("_one"), at("_preview"), at("_reset")):
        assert "Of the other" not in browser.get(address).content.decode()


@pytest.mark.parametrize(("name", "language"), [("alert", ""), ("change_password", ""), ("verify_email", "xx"), ("verify_email", "../de")])
def test_unknown_message_names_get_404(browser: Client, name: str, language: str) -> None:
    assert browser.get(at("_one", name, language)).status_code == 404


def test_a_mail_provider_is_saved_and_its_password_is_never_shown(browser: Client, tenant: Tenant) -> None:
    place = reverse("admin:identity_senders_one", kwargs={"channel": "email"})
    body: dict[str, Any] = {
        "is_enabled": "on",
        "smtp_host": "smtp.example.com",
        "smtp_port": "587",
        "smtp_user": "mailer",
        "smtp_pass": SECRET,
        "default_from": "Shop <shop@example.com>",
    }
    saved = browser.post(place, body, follow=True)
    assert "smtp.example.com:587" in saved.content.decode()
    for page in (saved, browser.get(place)):
        assert SECRET not in page.content.decode()
    kept = browser.post(place, {**body, "smtp_pass": "", "default_from": "a@example.com"}, follow=True)
    assert "Provider saved" in kept.content.decode()
    moved = browser.post(place, {**body, "smtp_pass": "", "smtp_host": "evil.example"}).content.decode()
    assert "Enter the secret again" in moved
    row = MessageProvider.objects.of(tenant.pk).get()
    assert (row.settings["smtp_host"], row.secret("smtp_pass")) == ("smtp.example.com", SECRET)
    assert SECRET not in str(list(AuditEntry.objects.filter(tenant_id=tenant.pk).values()))
    delete = reverse("admin:identity_senders_delete", kwargs={"channel": "email"})
    assert "Delete the provider of emails?" in browser.get(delete).content.decode()
    assert MessageProvider.objects.of(tenant.pk).exists()
    browser.post(delete)
    assert not MessageProvider.objects.of(tenant.pk).exists()


def test_a_sender_of_text_messages_is_saved(browser: Client, tenant: Tenant) -> None:
    place = reverse("admin:identity_senders_one", kwargs={"channel": "sms"})
    body = {"is_enabled": "on", "name": "twilio", "twilio_sid": "AC1", "twilio_token": SECRET, "default_from": "+15005550006"}
    odd = browser.post(place, {**body, "allowed_countries": "DE, Nowhere"}).content.decode()
    assert "Enter country codes" in odd
    assert SECRET not in odd
    browser.post(place, {**body, "allowed_countries": "de, AT"})
    row = MessageProvider.objects.of(tenant.pk).get()
    assert (row.name, row.settings["allowed_countries"], row.secret("twilio_token")) == ("twilio", ["DE", "AT"], SECRET)
    assert browser.get(reverse("admin:identity_senders_one", kwargs={"channel": "fax"})).status_code == 404
