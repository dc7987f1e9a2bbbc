"""The findings of the start page, the accounts that see them, and the first steps of a new tenant."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from authapi.models import SamlKey, SigningKey
from authapi.services.api_resources import ensure_management_api
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client
from authapi.tokens.saml_keys import current_key
from config.console.admin_site import site
from config.console.dashboard.checklist import Checklist
from config.console.dashboard.health import Finding
from events.models import EventStream, Mark, Outbox
from identity.models import AuditEntry, Tenant
from identity.staff_roles import AUDITOR
from provisioning.engine.streams import create_stream
from provisioning.models import Sweeper
from tests.factories.actions import make_deployed_action
from tests.factories.admin import browser_of, new_staff, new_tenant
from tests.factories.identity import make_user
from tests.factories.models.authapi import ClientCredentialFactory, SigningKeyFactory
from tests.factories.models.events import EventStreamFactory
from tests.factories.models.identity import ConnectionFactory, CustomDomainFactory
from tests.factories.models.provisioning import BreakerFactory, LaneFactory


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


@pytest.fixture
def operator(tenant: Tenant) -> Client:
    return browser_of(new_staff(None))


@pytest.fixture
def stream(tenant: Tenant) -> EventStream:
    destination = {"action_id": str(make_deployed_action(tenant).pk)}
    return create_stream(
        tenant_id=tenant.pk, name="Directory", subscriptions=["user.created"], destination_type="action", destination=destination
    )


def findings(browser: Client) -> list[Finding]:
    found: list[Finding] = browser.get("/admin/").context["findings"]
    return found


def said(browser: Client) -> str:
    return " ".join(f"{finding.text} {finding.advice}" for finding in findings(browser))


def steps(browser: Client) -> dict[str, bool]:
    found: Checklist | None = browser.get("/admin/").context["checklist"]
    return {} if found is None else {step.text: step.is_done for step in found.steps}


def test_a_healthy_tenant_has_no_findings(tenant: Tenant, browser: Client, operator: Client, settings: Settings) -> None:
    operator.post(reverse("admin:choose_tenant"), {"tenant": tenant.pk})
    settings.INSECURE_HTTP, settings.MAIL_IS_CONFIGURED, settings.MAIL_REACHES_PEOPLE = False, True, True
    # Other tests left rows of other tenants, which the operator would see as findings.
    Outbox.objects.all().delete()
    Mark.objects.all().delete()
    later = timezone.now() + timedelta(minutes=1)
    Sweeper.objects.update_or_create(name="lanes", defaults={"holder": "0" * 32, "lease_until": later})

    for client in (browser, operator):
        page = client.get("/admin/", secure=True)
        assert page.context["findings"] == []
        assert "No problems" in page.content.decode()


def test_a_held_stream_is_reported_with_its_reason_and_a_link(browser: Client, stream: EventStream) -> None:
    EventStream.objects.of(stream.tenant_id).filter(pk=stream.pk).update(
        held_since=timezone.now() - timedelta(hours=2), held_reason="The token was refused."
    )
    found = findings(browser)[0]

    assert found.tone == "bad"
    assert "Directory is held for 2 h 0 min: The token was refused." in found.text
    assert browser.get(found.url).status_code == 200


def test_repeated_failures_and_waiting_deliveries_are_reported_before_the_stream_is_held(browser: Client, stream: EventStream) -> None:
    BreakerFactory.create(stream_id=stream.pk, tenant_id=stream.tenant_id, failures=12)
    LaneFactory.create(stream_id=stream.pk, tenant_id=stream.tenant_id, key="user:1", not_before=timezone.now() - timedelta(minutes=5))
    text = said(browser)

    assert "The last 12 attempts of Directory have failed." in text
    assert "has been due for 5 min" in text
    assert "Tell an operator of the platform" in text
    assert all(browser.get(finding.url).status_code == 200 for finding in findings(browser))


def test_only_operators_see_findings_that_only_operators_can_fix(browser: Client, operator: Client, settings: Settings) -> None:
    settings.MAIL_IS_CONFIGURED = settings.MAIL_REACHES_PEOPLE = False
    Sweeper.objects.all().delete()
    text = said(operator)

    assert "No worker process is running." in text
    assert "The service uses plain HTTP." in text
    assert "Set EMAIL_URL" in text
    assert findings(operator)[0].tone == "bad"
    assert findings(browser) == []


def test_an_overdue_key_rotation_and_an_expiring_client_credential_are_reported(browser: Client, tenant: Tenant) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="Garden planner")
    ClientCredentialFactory.create(client=client, name="of spring", expires_at=timezone.now() + timedelta(days=3))
    SigningKey.objects.of(tenant.pk).filter(state="current").delete()
    SigningKeyFactory.create(tenant_id=tenant.pk, state="current", current_since=timezone.now() - timedelta(days=100))
    text = said(browser)

    assert "of spring of Garden planner expires on" in text
    assert "older than the limit of 90 days" in text


def test_an_expiring_saml_certificate_is_reported_months_before_its_expiry(browser: Client, tenant: Tenant) -> None:
    key = current_key(tenant.pk)
    assert "SAML certificate" not in said(browser)
    SamlKey.objects.of(tenant.pk).filter(pk=key.pk).update(expires_at=timezone.now() + timedelta(days=100))
    assert f"The SAML certificate of {tenant.pk} expires on" in said(browser)


def test_each_completed_first_step_is_marked_and_the_list_disappears_after_the_last_step(
    browser: Client, tenant: Tenant, stream: EventStream
) -> None:
    EventStream.objects.of(tenant.pk).delete()
    assert not any(steps(browser).values())
    assert len(steps(browser)) == 6
    links = [step.url for step in browser.get("/admin/").context["checklist"].steps]
    assert all(browser.get(link).status_code == 200 for link in links)

    make_user(connection=ConnectionFactory.create(tenant_id=tenant.pk, name="people", strategy="database"))
    client, _ = create_client(tenant_id=tenant.pk, name="Reader")
    assert [name for name, is_done in steps(browser).items() if is_done] == [
        "Add a connection",
        "Add the first user",
        "Register an application",
    ]

    api = ensure_management_api(tenant.pk)
    create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=api, scopes=["read:events"])
    EventStreamFactory.create(tenant_id=tenant.pk, name="again")
    assert [name for name, is_done in steps(browser).items() if not is_done] == ["Use a domain of your own"]

    CustomDomainFactory.create(tenant_id=tenant.pk, host=f"login.{tenant.pk}.test", verified_at=timezone.now())
    assert steps(browser) == {}


def test_an_administrator_dismisses_the_first_steps_for_all_staff_of_the_tenant(tenant: Tenant) -> None:
    dismiss = reverse("admin:dismiss_setup")
    staff = new_staff(tenant)
    browser, auditor, colleague = browser_of(staff), browser_of(new_staff(tenant, AUDITOR)), browser_of(new_staff(tenant))
    assert auditor.post(dismiss).status_code == 403
    assert browser.get(dismiss).status_code == 404
    assert dismiss not in auditor.get("/admin/").content.decode()
    assert steps(colleague)

    assert browser.post(dismiss).status_code == 302
    assert browser.post(dismiss).status_code == 302
    assert steps(colleague) == {}
    assert AuditEntry.objects.filter(object_type="identity.tenant", object_id=tenant.pk, actor_id=str(staff.pk)).count() == 1


def test_an_operator_without_a_selected_tenant_has_no_first_steps_to_dismiss(operator: Client) -> None:
    assert steps(operator) == {}
    assert operator.post(reverse("admin:dismiss_setup")).status_code == 404


def test_no_page_reveals_other_tenants_to_a_tenant_admin(browser: Client, tenant: Tenant) -> None:
    other = new_tenant("other")
    lists = [reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist") for model in site._registry]
    for address in ["/admin/", reverse("admin:password_change"), *lists, *(page.address for page in site.pages)]:
        text = browser.get(address, follow=True).content.decode()
        for telling in (other.pk, reverse("admin:choose_tenant"), "All tenants", "all tenants", "other tenants"):
            assert telling not in text, (address, telling)
