"""The texts of mails: how clients write them at `/email-templates`, and how sent mails use them."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import mail
from django.core.mail import EmailMultiAlternatives

from identity.mail.sending import send_mail
from identity.messages.catalogue import KINDS, PUBLIC_NAMES
from identity.messages.links import place_after
from identity.messages.templates import reset_template, save_template
from identity.models import EmailTicket, MessageTemplate, Tenant, User
from identity.services.failures import Invalid
from identity.services.jobs import run_job
from identity.services.users import update_user
from tests.factories.models.identity import MessageProviderFactory, TenantFactory
from tests.identity.messages.mail_servers import Mailbox, smtp_server
from tests.management import Management

BODY = "<p>Hello {{ user.name }}</p><p><a href='{{ url }}'>Confirm</a></p>"
TEMPLATE: dict[str, Any] = {
    "template": "verify_email",
    "body": BODY,
    "from": "{{ application.name }} <shop@example.com>",
    "subject": "Hello {{ user.name }}",
    "syntax": "liquid",
    "resultUrl": "https://example.com/done",
    "urlLifetimeInSeconds": 3600,
    "includeEmailInRedirect": False,
    "enabled": True,
}


def verify(api: Management, ada: User) -> EmailMultiAlternatives:
    assert run_job(api.post("jobs/verification-email", {"user_id": ada.user_id}).json["id"])
    message = mail.outbox[-1]
    assert isinstance(message, EmailMultiAlternatives)
    return message


def test_a_template_is_written_read_replaced_and_changed(api: Management) -> None:
    missing = api.get("email-templates/verify_email")
    assert (missing.status, missing.json["errorCode"]) == (404, "inexistent_email_template")
    assert api.patch("email-templates/verify_email", {"enabled": False}).status == 404
    assert api.post("email-templates", TEMPLATE).json == TEMPLATE
    assert api.post("email-templates", TEMPLATE).status == 409
    assert api.get("email-templates/verify_email").json == TEMPLATE
    changed = api.patch("email-templates/verify_email", {"subject": "New", "urlLifetimeInSeconds": 0, "resultUrl": None})
    assert changed.json == {**TEMPLATE, "subject": "New", "urlLifetimeInSeconds": None, "resultUrl": None}
    replaced = api.call("PUT", "email-templates/verify_email", body={"template": "verify_email", "body": "<p>{{ url }}</p>"})
    assert (replaced.status, replaced.json["subject"], replaced.json["enabled"]) == (200, None, True)


def test_a_put_request_creates_a_missing_template(api: Management) -> None:
    assert api.call("PUT", "email-templates/welcome_email", body={**TEMPLATE, "template": "welcome_email"}).status == 200
    assert api.call("PUT", "email-templates/welcome_email", body=TEMPLATE).status == 400


@pytest.mark.parametrize("name", [name for name in PUBLIC_NAMES if not KINDS[name].is_sent])
def test_templates_of_mails_that_are_never_sent_are_refused_with_the_reason(api: Management, name: str) -> None:
    for answer in (
        api.post("email-templates", {**TEMPLATE, "template": name}),
        api.call("PUT", f"email-templates/{name}", body={**TEMPLATE, "template": name}),
        api.patch(f"email-templates/{name}", {"enabled": True}),
    ):
        assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")
        assert f"does not send {name}" in answer.json["message"]
    assert api.get(f"email-templates/{name}").status == 404


@pytest.mark.parametrize("name", ["nothing", "passwordless_email", "passwordless_sms", "alert", "import_finished", "../layout"])
def test_unknown_template_names_are_refused(api: Management, name: str) -> None:
    assert api.get(f"email-templates/{name}").status == 404
    assert api.post("email-templates", {**TEMPLATE, "template": name}).status == 400


@pytest.mark.parametrize(
    "changed",
    [
        {"body": "{% include 'x' %}"},
        {"body": "{{ url | nope }}"},
        {"body": "{% for a in (1..1000000) %}x{% endfor %}"},
        {"body": "{{ url"},
        {"body": "<style>p{}</style>"},
        {"body": "x" * 70_000},
        {"subject": "{% if %}"},
        {"subject": "{{ nobody }}"},
        {"from": "nobody"},
        {"from": "{{ user.nobody }}"},
        {"resultUrl": "javascript:alert(1)"},
        {"resultUrl": "//example.com"},
        {"resultUrl": "https://a@example.com/"},
        {"urlLifetimeInSeconds": -1},
        {"urlLifetimeInSeconds": 10**9},
        {"syntax": "jinja"},
        {"surplus": 1},
    ],
    ids=range(17),
)
def test_an_invalid_template_is_refused_when_it_is_saved(api: Management, changed: dict[str, Any]) -> None:
    refused = api.post("email-templates", {**TEMPLATE, **changed})
    assert refused.status == 400, refused.json
    assert next(iter(changed)) in refused.json["message"]
    assert api.get("email-templates/verify_email").status == 404


def test_each_operation_requires_its_scope(tenant: Tenant) -> None:
    api = Management(tenant, scope="read:users")
    place = "email-templates/verify_email"
    answers = [api.get(place), api.post("email-templates", {}), api.patch(place, {}), api.call("PUT", place, body={})]
    assert [answer.status for answer in answers] == [403] * 4


def test_the_text_of_another_tenant_is_not_used(api: Management, ada: User) -> None:
    other = TenantFactory.create()
    save_template(tenant_id=other.pk, name="verify_email", values={"subject": "Of the other", "body": "<p>other</p>"})
    assert api.get("email-templates/verify_email").status == 404
    message = verify(api, ada)
    assert "other" not in f"{message.subject}{message.body}"


def test_a_mail_uses_the_template_of_the_tenant(api: Management, ada: User) -> None:
    api.post("email-templates", TEMPLATE)
    message = verify(api, ada)
    assert message.subject == "Hello Ada"
    html = str(message.alternatives[0][0])
    assert "<p>Hello Ada</p>" in html
    assert message.body.startswith("Hello Ada\n\nConfirm: http")
    ticket = EmailTicket.objects.of(ada.tenant_id).get()
    assert round((ticket.expires_at - ticket.created_at).total_seconds()) == 3600


def test_markup_or_line_breaks_in_a_name_do_not_change_the_mail(api: Management, ada: User) -> None:
    api.post("email-templates", TEMPLATE)
    name = "<a href='https://evil.example'>Ada</a>\r\nBcc: all@example.com\n\nClick"
    update_user(tenant_id=ada.tenant_id, user_id=ada.user_id, changes={"name": name})
    message = verify(api, ada)
    assert "\n" not in message.subject
    assert message.recipients() == ["ada@example.test"]
    assert "Bcc" not in message.message()
    html = str(message.alternatives[0][0])
    assert "<a href='https://evil.example'>" not in html
    assert "&lt;a href=&#39;https://evil.example&#39;&gt;" in html


def test_a_template_cannot_set_the_sender_if_the_tenant_has_no_mail_provider(api: Management, ada: User) -> None:
    api.post("email-templates", {**TEMPLATE, "from": "Bank <security@bank.example>"})
    message = verify(api, ada)
    assert message.from_email.endswith("<no-reply@localhost>")


@pytest.mark.usefixtures("reachable")
def test_a_template_can_set_the_sender_if_the_tenant_has_a_mail_provider(api: Management, ada: User, tenant: Tenant) -> None:
    api.post("email-templates", {**TEMPLATE, "from": "{{ friendly_name }} Team <shop@example.com>"})
    mailbox = Mailbox()
    with smtp_server(mailbox) as port:
        MessageProviderFactory.create(tenant_id=tenant.pk, settings={"smtp_host": "127.0.0.1", "smtp_port": port})
        assert run_job(api.post("jobs/verification-email", {"user_id": ada.user_id}).json["id"])
    assert mailbox.mails[0]["from"] == f"{tenant.name} Team <shop@example.com>"
    assert mailbox.senders == ["shop@example.com"]


def test_a_mail_has_the_text_of_its_language_or_otherwise_the_default_text(tenant: Tenant) -> None:
    save_template(tenant_id=tenant.pk, name="reset_email", values={"subject": "For all", "body": "<p>all {{ url }}</p>"})
    save_template(tenant_id=tenant.pk, name="reset_email", values={"subject": "Deutsch", "body": "<p>deutsch</p>"}, language="de")
    for language, subject in (("de", "Deutsch"), ("de-AT", "Deutsch"), ("fr", "For all"), ("", "For all")):
        context = {"url": "https://example.com", "user": {"email": "a@example.com"}}
        send_mail("reset_email", to=["a@example.com"], context=context, tenant_id=tenant.pk, language=language)
        assert mail.outbox[-1].subject == subject
    assert reset_template(tenant_id=tenant.pk, name="reset_email") == 2


def test_saving_the_template_of_one_language_does_not_change_the_settings_for_all_languages(tenant: Tenant) -> None:
    row = save_template(
        tenant_id=tenant.pk, name="reset_email", values={"subject": "x", "is_enabled": False, "result_url": "bad"}, language="de"
    )
    assert (row.is_enabled, row.result_url) == (True, "")
    with pytest.raises(Invalid):
        save_template(tenant_id=tenant.pk, name="reset_email", values={"result_url": "bad"})


def test_a_disabled_mail_is_not_sent(api: Management, tenant: Tenant, ada: User) -> None:
    api.post("email-templates", {"template": "verify_email", "enabled": False})
    job = api.post("jobs/verification-email", {"user_id": ada.user_id}).json["id"]
    assert run_job(job)
    assert mail.outbox == []
    assert api.get(f"jobs/{job}").json["status_details"] == "The tenant has switched this mail off."
    assert MessageTemplate.objects.of(tenant.pk).get().body == ""


def test_the_built_in_mail_contains_html_with_the_name_and_the_link(api: Management, ada: User, tenant: Tenant) -> None:
    message = verify(api, ada)
    html = str(message.alternatives[0][0])
    assert tenant.name in html
    assert message.body.count("http") == 1
    assert f'href="{message.body[message.body.index("http") :].split()[0]}"' in html
    assert "prefers-color-scheme: dark" in html


def test_the_page_of_a_link_redirects_to_the_result_url_of_the_template(tenant: Tenant) -> None:
    assert place_after(tenant.pk, "verify_email", email="a@example.com") == ""
    save_template(tenant_id=tenant.pk, name="verify_email", values={"result_url": "https://example.com/done?x=1&email=old"})
    found = place_after(tenant.pk, "verify_email", email="a+b@example.com")
    assert found == "https://example.com/done?x=1&email=a%2Bb%40example.com&success=true"
    save_template(tenant_id=tenant.pk, name="verify_email", values={"includes_email_in_redirect": False})
    assert place_after(tenant.pk, "verify_email", email="a@example.com") == "https://example.com/done?x=1&success=true"
